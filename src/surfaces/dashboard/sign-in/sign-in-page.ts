/** Signing in with email address and password, and signing out. */

import type { RequestHandler, Response } from 'express'
import { shellCommand } from '../../../config/command-line.ts'
import type { Dependencies } from '../dependencies.ts'
import { submittedForm } from '../form-body.ts'
import { html, inputField, nothing, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { PageForbidden } from '../page-handler.ts'
import { type PublicHandler, redirect, sendHtml } from '../page-routes.ts'
import { endSession } from '../session.ts'
import { recordRefusal, signInLimits, tooManyAttempts } from './attempt-limits.ts'
import { nextPath, passFirstFactor } from './code-page.ts'

export function limitSignIn(deps: Dependencies): RequestHandler[] {
  return signInLimits(deps, async (response) => {
    const form = submittedForm(response)
    const shown = { email: form.get('email') ?? '', next: form.get('next') ?? '', error: tooManyAttempts }
    await sendSignInPage(response, deps, 429, shown)
  })
}

const doneMessages = new Map([
  ['signedOut', 'You are signed out.'],
  ['signedOutEverywhere', 'You are signed out everywhere.'],
])

export const showSignIn: PublicHandler = async (request, response, deps) => {
  const query = new URLSearchParams(request.originalUrl.split('?')[1])
  if (request.session.stored && !query.has('done')) return redirect(response, nextPath(query))
  const message = doneMessages.get(query.get('done') ?? '')
  const shown = { email: '', next: query.get('next') ?? '', message, isSignedOut: query.has('done') }
  await sendSignInPage(response, deps, 200, shown)
}

export const signIn: PublicHandler = async (request, response, deps) => {
  if (!deps.passwords) throw new PageForbidden('Passwords are switched off for this service. Sign in another way.')
  const form = submittedForm(response)
  const email = form.get('email') ?? ''
  const user = await deps.users.authenticate(email, form.get('password') ?? '')
  if (!user) {
    recordRefusal(deps, 'sign-in refused', request.ip, await deps.users.findByEmail(email), 'user.signInRefused')
    const error = 'Incorrect email or password.'
    return sendSignInPage(response, deps, 401, { email, next: form.get('next') ?? '', error })
  }
  await passFirstFactor(request, response, deps, { user, how: 'password', byLink: false }, nextPath(form))
}

export const signOut: PublicHandler = async (request, response) => {
  await endSession(request)
  // Not `"cookies"`, which would delete those of every other site of the domain, and not `"cache"`, which has no page.
  response.set('Clear-Site-Data', '"storage"')
  redirect(response, '/sign-in?done=signedOut')
}

interface SignInPage {
  email: string
  /** Path to open after signing in. */
  next: string
  error?: string
  message?: string | undefined
  isSignedOut?: boolean
}

async function sendSignInPage(
  response: Response,
  { identityProvider: provider, passwords }: Dependencies,
  status: number,
  { email, next, error, message, isSignedOut = false }: SignInPage,
) {
  const byProvider =
    provider &&
    html`<p><a class="button" role="button" href="/sign-in/provider?${new URLSearchParams(next ? { next } : {})}">Sign in with ${provider.name}</a></p>
      ${isSignedOut ? html`<p><a href="/sign-out/provider">Sign out of ${provider.name}, too</a></p>` : nothing}`
  const byPassword = html`<form method="post" action="/sign-in">
    <input type="hidden" name="next" value="${next}" />
    ${inputField({ name: 'email', label: 'Email', type: 'email', value: email, required: true, autocomplete: 'username', autofocus: email === '' && !provider })}
    ${inputField({ name: 'password', label: 'Password', type: 'password', required: true, autocomplete: 'current-password', autofocus: email !== '' })}
    <button class="${provider ? 'secondary' : ''}">Sign in${provider ? ' with password' : ''}</button>
  </form>`
  const body = html`<h1>Sign in</h1>
    ${error ? notice('bad', error) : nothing} ${message ? notice('good', message) : nothing}
    ${byProvider ?? nothing} ${passwords ? byPassword : nothing}
    <p class="muted">
      Can’t sign in? Ask an admin of your account for a sign-in link, or run
      <code>${shellCommand('users sign-in-link --email EMAIL')}</code> on the server.
    </p>`
  await sendHtml(response, status, renderPlainPage('Sign in', body))
}
