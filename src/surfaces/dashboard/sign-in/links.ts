/** Links that work once: choosing who you are, in a new account or as one who was invited; and signing in. */
import type { Request, RequestHandler, Response } from 'express'
import { LinkExpiredError, type SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { passwordLengthMin, UserError } from '../../../domain/accounts/user.ts'
import type { Parts } from '../dependencies.ts'
import { inputField, moment, notice } from '../elements.ts'
import { formOf } from '../forms.ts'
import { type Html, html } from '../html.ts'
import { redirect, sendDocument } from '../serve.ts'
import { signIn } from '../session.ts'
import { plainDocument } from '../shell.ts'

/** Opening a link changes nothing, so that a program which looks at links does not use it up. */
export function show(parts: Parts): RequestHandler {
  return async (request, response) => {
    const link = await parts.links.find(tokenOf(request))
    if (!link) return sendEnded(response)
    await sendLink(parts, response, link, { status: 200 })
  }
}

export function submit(parts: Parts): RequestHandler {
  return async (request, response) => {
    const token = tokenOf(request)
    const link = await parts.links.find(token)
    if (!link) return sendEnded(response)
    const form = formOf(response)
    const field = (name: string) => form.get(name) ?? ''
    try {
      const given = { name: field('name'), email: field('email'), password: field('password') }
      const byLink = link.kind === 'signIn'
      const user = byLink ? await parts.links.useSignInLink(token) : await parts.links.accept(token, given)
      await parts.users.recordSignIn(user, 'link')
      await signIn(request, user, byLink)
      redirect(response, '/')
    } catch (error) {
      if (error instanceof LinkExpiredError) return sendEnded(response)
      if (!(error instanceof UserError)) throw error
      await sendLink(parts, response, link, { status: 400, form, refused: error })
    }
  }
}

function tokenOf({ params }: Request): string {
  return String(params.token)
}

async function sendEnded(response: Response): Promise<void> {
  const body = html`<h1>This link has ended</h1>
    ${notice('warning', 'It was used or withdrawn, or its time is over. Each link works once.')}
    <p>
      Ask an owner of the account for another one. Whoever runs this service makes one with
      <code>npm run cli -- users sign-in-link</code>.
    </p>
    <p><a href="/sign-in">Sign in with your password</a></p>`
  await sendDocument(response, 410, plainDocument('This link has ended', body))
}

interface Sent {
  status: number
  form?: URLSearchParams
  refused?: UserError
}

async function sendLink(parts: Parts, response: Response, link: SignInLink, sent: Sent): Promise<void> {
  const [account, user] = await Promise.all([
    parts.accounts.get(link.accountId),
    link.userId === null ? undefined : parts.users.get(link.userId),
  ])
  const accountName = account?.name ?? ''
  const title = link.kind === 'welcome' ? 'Welcome' : link.kind === 'invitation' ? 'You are invited' : 'Sign in'
  const body =
    link.kind === 'signIn'
      ? signInView(accountName, user?.name ?? '', link)
      : chooseView(title, accountName, link, sent)
  await sendDocument(response, sent.status, plainDocument(title, body))
}

function signInView(accountName: string, userName: string, { expiresAt }: SignInLink): Html {
  return html`<h1>Sign in</h1>
    <p>This link signs you in as <strong>${userName}</strong> of <strong>${accountName}</strong>. It works once.</p>
    <form method="post"><button autofocus>Sign in as ${userName}</button></form>
    <p class="muted">It ends ${moment(expiresAt)}.</p>`
}

function chooseView(title: string, accountName: string, link: SignInLink, { form, refused }: Sent): Html {
  const value = (name: string) => form?.get(name) ?? ''
  const error = (name: string) => (refused?.member === name ? refused.message : undefined)
  const isFirst = (name: string) => (refused?.member ?? 'name') === name
  const lead =
    link.kind === 'welcome'
      ? html`You are the first here. Choose who you are; you will own the account <strong>${accountName}</strong>.`
      : html`Choose who you are to join <strong>${accountName}</strong> as ${link.role === 'owner' ? 'an owner' : 'a member'}.`
  return html`<h1>${title}</h1>
    <p>${lead}</p>
    <form method="post">
      ${inputField({ name: 'name', label: 'Name', value: value('name'), error: error('name'), required: true, autocomplete: 'name', maxlength: 100, autofocus: isFirst('name') })}
      ${inputField({ name: 'email', label: 'E-mail', type: 'email', value: value('email'), error: error('email'), required: true, autocomplete: 'username', hint: 'You sign in with it. No mail is sent.', autofocus: isFirst('email') })}
      ${inputField({ name: 'password', label: 'Password', type: 'password', error: error('password'), required: true, autocomplete: 'new-password', hint: `At least ${passwordLengthMin} characters; a few words do well.`, autofocus: isFirst('password') })}
      <button>${link.kind === 'welcome' ? 'Create my user' : 'Join'}</button>
    </form>`
}
