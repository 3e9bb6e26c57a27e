/** Signing in with e-mail address and password, and signing out. */
import type { RequestHandler, Response } from 'express'
import { signInLimits, tooMany } from '../attempt-limits.ts'
import type { Parts } from '../dependencies.ts'
import { inputField, notice } from '../elements.ts'
import { formOf } from '../forms.ts'
import { type Html, html, nothing } from '../html.ts'
import { redirect, sendDocument } from '../serve.ts'
import { signIn, signOut } from '../session.ts'
import { plainDocument } from '../shell.ts'

export function limits({ attempts }: Parts): RequestHandler[] {
  return signInLimits(attempts, async (response) => {
    const form = formOf(response)
    await sendForm(response, 429, { email: form.get('email') ?? '', next: form.get('next') ?? '', refusal: tooMany })
  })
}

interface SignInForm {
  email: string
  /** Where the reader wanted to go. */
  next: string
  refusal?: string
  done?: string
}

const endings = new Map([['signedOut', 'You are signed out.']])

export function show(): RequestHandler {
  return async (request, response) => {
    const query = new URLSearchParams(request.originalUrl.split('?')[1])
    if (request.session.userId !== undefined && !query.has('done')) return redirect(response, goalOf(query))
    const done = endings.get(query.get('done') ?? '')
    await sendForm(response, 200, { email: '', next: query.get('next') ?? '', ...(done && { done }) })
  }
}

export function submit({ users }: Parts): RequestHandler {
  return async (request, response) => {
    const form = formOf(response)
    const email = form.get('email') ?? ''
    const user = await users.authenticate(email, form.get('password') ?? '')
    if (!user) {
      const refusal = 'There is no user with this e-mail address and password.'
      return sendForm(response, 401, { email, next: form.get('next') ?? '', refusal })
    }
    await users.recordSignIn(user, 'password')
    await signIn(request, user, false)
    redirect(response, goalOf(form))
  }
}

export function leave(): RequestHandler {
  return async (request, response) => {
    await signOut(request)
    // What the browser has stored of this site goes as well; its cache holds no page of it. Not `"cookies"`, which
    // would take those of every other site of the domain.
    response.set('Clear-Site-Data', '"storage"')
    redirect(response, '/sign-in?done=signedOut')
  }
}

/** A path of this dashboard, and nothing that a browser could take for another site. */
function goalOf(form: URLSearchParams): string {
  const next = form.get('next') ?? ''
  const url = URL.parse(next, 'http://dashboard.invalid')
  // The path that is left of `/.//evil.example` names another host.
  const isOwn = next.startsWith('/') && url?.host === 'dashboard.invalid' && !/^\/(\/|sign-in)/.test(url.pathname)
  return isOwn ? `${url.pathname}${url.search}` : '/'
}

async function sendForm(response: Response, status: number, form: SignInForm): Promise<void> {
  await sendDocument(response, status, plainDocument('Sign in', formView(form)))
}

function formView({ email, next, refusal, done }: SignInForm): Html {
  return html`<h1>Sign in</h1>
    ${refusal ? notice('bad', refusal) : nothing} ${done ? notice('good', done) : nothing}
    <form method="post" action="/sign-in">
      <input type="hidden" name="next" value="${next}" />
      ${inputField({ name: 'email', label: 'E-mail', type: 'email', value: email, required: true, autocomplete: 'username', autofocus: email === '' })}
      ${inputField({ name: 'password', label: 'Password', type: 'password', required: true, autocomplete: 'current-password', autofocus: email !== '' })}
      <button>Sign in</button>
    </form>
    <p class="muted">
      No way in? An owner of your account can make you a link under Settings, and whoever runs this service can with
      <code>npm run cli -- users sign-in-link --email EMAIL</code>.
    </p>`
}
