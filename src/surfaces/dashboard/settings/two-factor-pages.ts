/** Two-factor authentication of the user: setting it up, recovery codes, and removal. */
import { type CurrentProof, recoveryCodesMax } from '../../../domain/accounts/second-factors.ts'
import type { UserError } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { backLink, badge, copyable, type Html, heading, html, inputField, nothing, notice } from '../html.ts'
import { type Page, PageForbidden, type PageHandler, type PageRequest } from '../page-handler.ts'
import { setUpPath } from '../page-routes.ts'
import { currentPassword, currentPasswordField, isFreshLink, renderPasswordForm, toUserError } from './profile-page.ts'

const path = '/profile/two-factor'
const title = 'Two-factor authentication'

const page = (body: Html, status = 200): Page => ({ title, tab: 'profile', body, status })

/** On the profile page. */
export async function renderTwoFactorCard({ user }: PageRequest, { secondFactors }: Dependencies): Promise<Html> {
  const left = user.hasSecondFactor ? await secondFactors.countRecoveryCodes(user.id) : 0
  const content = user.hasSecondFactor
    ? html`<p>${badge('good', 'On')} You sign in with your password and a code of your authenticator app. ${renderCount(left)}</p>
        <a class="button secondary" href="${path}">Manage</a>`
    : html`<p>${badge('quiet', 'Off')} Sign in with a code of an authenticator app as well as your password.</p>
        <a class="button secondary" href="${setUpPath}">Set up</a>`
  return html`<section class="card two-factor"><h2>${title}</h2>${content}</section>`
}

function renderCount(left: number): string {
  return `${left} of ${recoveryCodesMax} recovery codes ${left === 1 ? 'is' : 'are'} left.`
}

export const showTwoFactor: PageHandler = async (request, deps) => {
  return request.user.hasSecondFactor ? managePage(request, deps) : showSetUp(request, deps)
}

type ManageForm = 'remove' | 'recovery-codes'

async function managePage(request: PageRequest, deps: Dependencies, failed?: { form: ManageForm; error: UserError }) {
  const { user, account } = request
  const { error } = failed ?? {}
  const left = await deps.secondFactors.countRecoveryCodes(user.id)
  const errorOf = (form: ManageForm) =>
    error?.member === 'currentPassword' && failed?.form === form ? error.message : undefined
  const codeErrorOf = (form: ManageForm) =>
    error?.member === 'currentCode' && failed?.form === form ? error.message : undefined
  const removal = html`<form method="post" action="${path}/remove" class="card">
    <h2>Remove</h2>
    <p>You then sign in with your password alone. Your other sessions are signed out.</p>
    ${currentPasswordField(request, errorOf('remove'), 'passwordNow')}
    ${currentCodeField(codeErrorOf('remove'), 'codeNow')}
    <div class="buttons"><button class="danger">Remove two-factor authentication</button></div>
  </form>`
  const body = html`${backLink('/profile', 'Profile')} ${heading(title)}
    ${error && !error.member ? notice('bad', error.message) : nothing}
    <section class="card two-factor">
      <h2>Authenticator app</h2>
      <p>${badge('good', 'On')} To use another app or device, set it up in place of this one.</p>
      <a class="button secondary" href="${setUpPath}">Set up another app</a>
    </section>
    <form method="post" action="${path}/recovery-codes" class="card">
      <h2>Recovery codes</h2>
      <p>${renderCount(left)} New codes replace all former ones.</p>
      ${currentPasswordField(request, errorOf('recovery-codes'))}
      ${currentCodeField(codeErrorOf('recovery-codes'))}
      <div class="buttons"><button>Create new recovery codes</button></div>
    </form>
    ${account.secondFactorRequired ? notice('quiet', 'Your account requires two-factor authentication.') : removal}`
  return page(body, error ? 400 : 200)
}

export const showSetUp: PageHandler = async (request, deps) =>
  setUpPage(request, deps, await deps.secondFactors.createSecret())

export const setUp: PageHandler = async (request, deps) => {
  const { form, user, session } = request
  const proof = { secret: form.get('secret') ?? '', code: form.get('code') ?? '' }
  try {
    const { user: changed, codes } = await deps.secondFactors.setUp(user, proof, currentProof(request))
    await request.renewSession(changed, session.byLink)
    return codesPage('Two-factor authentication is on. Your other sessions were signed out.', codes)
  } catch (error) {
    return setUpPage(request, deps, proof.secret, toUserError(request, deps, error))
  }
}

export const replaceRecoveryCodes: PageHandler = async (request, deps) => {
  try {
    const codes = await deps.secondFactors.replaceRecoveryCodes(request.user, currentProof(request))
    return codesPage('Your former recovery codes no longer work.', codes)
  } catch (error) {
    return managePage(request, deps, { form: 'recovery-codes', error: toUserError(request, deps, error) })
  }
}

export const remove: PageHandler = async (request, deps) => {
  const { user, account, session } = request
  if (account.secondFactorRequired) throw new PageForbidden('Your account requires two-factor authentication.')
  try {
    const removed = await deps.secondFactors.remove(user, currentProof(request, 'passwordNow', 'codeNow'))
    await request.renewSession(removed, session.byLink)
    return { location: '/profile?done=removed' }
  } catch (error) {
    return managePage(request, deps, { form: 'remove', error: toUserError(request, deps, error) })
  }
}

async function setUpPage(request: PageRequest, deps: Dependencies, secret: string, error?: UserError): Promise<Page> {
  const { user, account } = request
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  const isRequired = account.secondFactorRequired && !user.hasSecondFactor
  const uri = await deps.secondFactors.setUpUri(user, secret)
  const body = html`${isRequired ? nothing : backLink('/profile', 'Profile')} ${heading(`Set up ${title.toLowerCase()}`)}
    ${isRequired ? notice('warning', html`<strong>${account.name} requires two-factor authentication.</strong> Set it up to continue.`) : nothing}
    ${error && !error.member ? notice('bad', error.message) : nothing}
    <form method="post" action="${setUpPath}" class="card">
      <input type="hidden" name="secret" value="${secret}" />
      <h2>1. Scan the code with an authenticator app</h2>
      ${await renderQrCode(uri)}
      <details>
        <summary>Enter a key instead</summary>
        ${copyable('secret', secret.replaceAll(/.{4}(?=.)/g, '$& '))}
        <p class="muted">Type: time-based. On this device, you can also <a href="${uri}">open your app</a>.</p>
      </details>
      <h2>2. Enter the code that the app shows</h2>
      ${inputField({ name: 'code', label: 'Code', error: errorFor('code'), required: true, autocomplete: 'one-time-code', inputmode: 'numeric', maxlength: 10 })}
      ${currentPasswordField(request, errorFor('currentPassword'))}
      ${user.hasSecondFactor ? currentCodeField(errorFor('currentCode')) : nothing}
      <div class="buttons"><button>Turn on</button>${isRequired ? nothing : html`<a href="/profile">Cancel</a>`}</div>
    </form>
    ${isRequired && isFreshLink(request) ? renderPasswordForm(request) : nothing}`
  return page(body, error ? 400 : 200)
}

type CurrentCodeName = 'currentCode' | 'codeNow'

function currentProof(
  request: PageRequest,
  password: Parameters<typeof currentPassword>[1] = 'currentPassword',
  code: CurrentCodeName = 'currentCode',
): CurrentProof {
  return { password: currentPassword(request, password), code: request.form.get(code) ?? '' }
}

/** @param name differs between the forms of a page, because the field's id contains it. */
function currentCodeField(error: string | undefined, name: CurrentCodeName = 'currentCode'): Html {
  const hint = 'A code of your present app, or a recovery code.'
  return inputField({ name, label: 'Current code', error, required: true, autocomplete: 'off', maxlength: 40, hint })
}

/** Drawn without inline styles, which the content security policy refuses. */
async function renderQrCode(text: string): Promise<Html> {
  const { encode } = await import('uqr')
  const { data, size } = encode(text, { border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join('')
  return html`<svg class="qr-code" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code for your authenticator app" shape-rendering="crispEdges">
    <path d="${path}" />
  </svg>`
}

function codesPage(message: string, codes: readonly string[]): Page {
  const body = html`${backLink('/profile', 'Profile')} ${heading('Recovery codes')}
    ${notice('good', message)}
    ${notice('warning', html`<strong>Keep these codes now.</strong> You won’t be able to see them again. Each one signs you in once, without your app.`)}
    <section class="card">${copyable('recovery-codes', codes.join('\n'), { once: true, label: 'Copy codes' })}</section>
    <p><a class="button" href="/profile">I have kept them</a></p>`
  return { title: 'Recovery codes', tab: 'profile', body }
}
