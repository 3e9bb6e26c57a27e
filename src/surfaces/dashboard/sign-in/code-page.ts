/** The second step of signing in, for users with two-factor authentication: a code of their app, or a recovery code. */

import type { Request, RequestHandler, Response } from 'express'
import { shellCommand } from '../../../config/command-line.ts'
import { type Challenge, challengeMinutes } from '../../../domain/accounts/second-factors.ts'
import type { Proof } from '../../../domain/accounts/sessions.ts'
import type { Dependencies } from '../dependencies.ts'
import { submittedForm } from '../form-body.ts'
import { attribute, html, inputField, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { type PublicHandler, redirect, sendHtml } from '../page-routes.ts'
import { startSession } from '../session.ts'
import { codeLimits, recordRefusal } from './attempt-limits.ts'

/** Signs the user in, or asks for their second factor. */
export async function passFirstFactor(
  request: Request,
  response: Response,
  { secondFactors }: Dependencies,
  challenge: Challenge,
  next: string,
): Promise<void> {
  if (!challenge.user.hasSecondFactor) return finishSignIn(request, response, challenge, next)
  await sendCodePage(response, 200, { challenge: secondFactors.createChallenge(challenge), next })
}

async function finishSignIn(
  request: Request,
  response: Response,
  { user, byLink, how }: Challenge,
  next: string,
  secondFactor?: NonNullable<Proof>['secondFactor'],
): Promise<void> {
  await startSession(request, { user, byLink, proof: { how, ...(secondFactor && { secondFactor }) } })
  redirect(response, next)
}

/** Reads the challenge of the form, before limits that count by its user. */
export function limitCodes(deps: Dependencies): RequestHandler[] {
  const readChallenge: RequestHandler = async (_request, response, next) => {
    const challenge = await deps.secondFactors.readChallenge(submittedForm(response).get('challenge') ?? '')
    if (!challenge) return sendExpired(response)
    response.locals.challenge = challenge
    next()
  }
  return [readChallenge, ...codeLimits(deps, ({ locals }) => locals.challenge.user)]
}

export const signInWithCode: PublicHandler = async (request, response, deps) => {
  const form = submittedForm(response)
  const challenge: Challenge = response.locals.challenge
  const { user } = challenge
  const recoveryCode = form.get('recoveryCode')
  const isAccepted =
    recoveryCode === null
      ? await deps.secondFactors.useCode(user, form.get('code') ?? '')
      : await deps.secondFactors.useRecoveryCode(user, recoveryCode)
  if (isAccepted) {
    const secondFactor = recoveryCode === null ? 'code' : 'recovery code'
    return finishSignIn(request, response, challenge, nextPath(form), secondFactor)
  }
  recordRefusal(deps, 'sign-in code refused', request.ip, user, 'user.secondFactorRefused')
  const shown = { challenge: form.get('challenge') ?? '', next: form.get('next') ?? '' }
  await sendCodePage(response, 401, { ...shown, wrong: recoveryCode === null ? 'code' : 'recoveryCode' })
}

/** The path in the form to open after signing in; `/` unless it is one of the dashboard's. */
export function nextPath(form: URLSearchParams): string {
  const next = form.get('next') ?? ''
  const url = URL.parse(next, 'http://dashboard.invalid')
  // The normalized path of `/.//evil.example` starts with `//` and names another host.
  const isOwn = next.startsWith('/') && url?.host === 'dashboard.invalid' && !/^\/(\/|sign-in)/.test(url.pathname)
  return isOwn ? `${url.pathname}${url.search}` : '/'
}

interface CodePage {
  challenge: string
  next: string
  wrong?: 'code' | 'recoveryCode'
}

async function sendCodePage(response: Response, status: number, { challenge, next, wrong }: CodePage): Promise<void> {
  const hidden = html`<input type="hidden" name="challenge" value="${challenge}" />
    <input type="hidden" name="next" value="${next}" />`
  const codeError = wrong === 'code' ? 'This code is incorrect or was already used. Wait for the next one.' : undefined
  const recoveryError = wrong === 'recoveryCode' ? 'This recovery code is incorrect or was already used.' : undefined
  const body = html`<h1>Enter your code</h1>
    <form method="post" action="/sign-in/code">
      ${hidden}
      ${inputField({ name: 'code', label: 'Code', error: codeError, required: true, autocomplete: 'one-time-code', inputmode: 'numeric', maxlength: 10, autofocus: !recoveryError, hint: 'The 6 digits that your authenticator app shows for execution-service.' })}
      <button>Sign in</button>
    </form>
    <details ${attribute('open', recoveryError !== undefined)}>
      <summary>Use a recovery code</summary>
      <form method="post" action="/sign-in/code">
        ${hidden}
        ${inputField({ name: 'recoveryCode', label: 'Recovery code', error: recoveryError, required: true, maxlength: 40, autofocus: recoveryError !== undefined, hint: 'Each one works once.' })}
        <button class="secondary">Sign in with recovery code</button>
      </form>
      <p class="muted">
        No codes left? Ask the operator of this service to run
        <code>${shellCommand('users remove-second-factor --email EMAIL')}</code>.
      </p>
    </details>
    <p><a href="/sign-in">Sign in as another user</a></p>`
  await sendHtml(response, status, renderPlainPage('Enter your code', body))
}

async function sendExpired(response: Response): Promise<void> {
  const body = html`<h1>Sign in again</h1>
    ${notice('warning', `Enter the code within ${challengeMinutes} minutes of your password.`)}
    <p><a href="/sign-in">Sign in</a></p>`
  await sendHtml(response, 401, renderPlainPage('Sign in again', body))
}
