/** Single-use links: to set up the first user, to accept an invitation, and to sign in. */

import type { Request, Response } from 'express'
import { shellCommand } from '../../../config/command-line.ts'
import { passwordLengthMin } from '../../../domain/accounts/passwords.ts'
import { LinkExpiredError, type SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { UserError } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { submittedForm } from '../form-body.ts'
import { time } from '../format.ts'
import { type Html, html, inputField, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { PageForbidden } from '../page-handler.ts'
import { type PublicHandler, sendHtml } from '../page-routes.ts'
import { recordRefusal } from './attempt-limits.ts'
import { passFirstFactor } from './code-page.ts'

/** Has no effect on the link, so that programs that preview links do not consume it. */
export const showLink: PublicHandler = async (request, response, deps) => {
  const link = await deps.links.find(linkToken(request))
  if (!link) return sendInvalidLink(request, response, deps)
  requirePasswords(deps, link)
  await sendLinkPage(deps, response, link, { status: 200 })
}

export const useLink: PublicHandler = async (request, response, deps) => {
  const token = linkToken(request)
  const link = await deps.links.find(token)
  if (!link) return sendInvalidLink(request, response, deps)
  requirePasswords(deps, link)
  const form = submittedForm(response)
  const field = (name: string) => form.get(name) ?? ''
  try {
    const details = { name: field('name'), email: field('email'), password: field('password') }
    const byLink = link.kind === 'signIn'
    const user = byLink ? await deps.links.useSignInLink(token) : await deps.links.accept(token, details)
    await passFirstFactor(request, response, deps, { user, how: 'link', byLink }, '/')
  } catch (error) {
    if (error instanceof LinkExpiredError) return sendInvalidLink(request, response, deps)
    if (!(error instanceof UserError)) throw error
    await sendLinkPage(deps, response, link, { status: 400, form, error })
  }
}

/** An invitation or welcome link creates a user with a password. @throws {PageForbidden} */
function requirePasswords({ passwords, identityProvider }: Dependencies, { kind }: SignInLink): void {
  if (passwords || kind === 'signIn') return
  throw new PageForbidden(
    `Passwords are switched off for this service. Join by signing in with ${identityProvider?.name}.`,
  )
}

function linkToken({ params }: Request): string {
  return String(params.token)
}

async function sendInvalidLink(request: Request, response: Response, deps: Dependencies): Promise<void> {
  recordRefusal(deps, 'sign-in link refused', request.ip)
  const title = 'This link is no longer valid'
  const body = html`<h1>${title}</h1>
    ${notice('warning', 'It has expired, was revoked, or was already used. Each link works once.')}
    <p>
      Ask an admin of the account for a new link, or run <code>${shellCommand('users sign-in-link')}</code> on the server.
    </p>
    <p><a href="/sign-in">Sign in</a></p>`
  await sendHtml(response, 410, renderPlainPage(title, body))
}

interface Submission {
  status: number
  form?: URLSearchParams
  error?: UserError
}

async function sendLinkPage(deps: Dependencies, response: Response, link: SignInLink, submission: Submission) {
  const [account, user] = await Promise.all([
    deps.accounts.get(link.accountId),
    link.userId === null ? undefined : deps.users.get(link.userId),
  ])
  const accountName = account?.name ?? ''
  const titles = { welcome: 'Welcome', invitation: 'You’re invited', signIn: 'Sign in' }
  const title = titles[link.kind]
  const body =
    link.kind === 'signIn'
      ? renderSignInLink(accountName, user?.name ?? '', link)
      : renderNewUserForm(title, accountName, link, submission)
  await sendHtml(response, submission.status, renderPlainPage(title, body))
}

function renderSignInLink(accountName: string, userName: string, { expiresAt }: SignInLink): Html {
  return html`<h1>Sign in</h1>
    <p>This link signs you in to <strong>${accountName}</strong> as <strong>${userName}</strong>. It works once.</p>
    <form method="post"><button autofocus>Sign in as ${userName}</button></form>
    <p class="muted">Expires ${time(expiresAt)}.</p>`
}

function renderNewUserForm(title: string, accountName: string, link: SignInLink, { form, error }: Submission): Html {
  const value = (name: string) => form?.get(name) ?? ''
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  const autofocus = (name: string) => (error?.member ?? 'name') === name
  const isWelcome = link.kind === 'welcome'
  const lead = isWelcome
    ? html`Create the first user. You will be the admin of the account <strong>${accountName}</strong>.`
    : html`Create your user to join <strong>${accountName}</strong> with the role <strong>${link.role ?? 'admin'}</strong>.`
  return html`<h1>${title}</h1>
    <p>${lead}</p>
    <form method="post">
      ${inputField({ name: 'name', label: 'Name', value: value('name'), error: errorFor('name'), required: true, autocomplete: 'name', maxlength: 100, autofocus: autofocus('name') })}
      ${inputField({ name: 'email', label: 'Email', type: 'email', value: value('email'), error: errorFor('email'), required: true, autocomplete: 'username', hint: 'You sign in with it. No email is sent.', autofocus: autofocus('email') })}
      ${inputField({ name: 'password', label: 'Password', type: 'password', error: errorFor('password'), required: true, autocomplete: 'new-password', hint: `At least ${passwordLengthMin} characters.`, autofocus: autofocus('password') })}
      <button>${isWelcome ? 'Create user' : 'Join'}</button>
    </form>`
}
