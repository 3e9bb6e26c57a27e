/** The user's own name, email address and password. Also shows their second factor and their sessions. */
import { passwordLengthMin } from '../../../domain/accounts/passwords.ts'
import { roleTitles } from '../../../domain/accounts/roles.ts'
import { UserError } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { type Html, heading, html, inputField, nothing, notice } from '../html.ts'
import { type Page, PageForbidden, type PageHandler, type PageRequest } from '../page-handler.ts'
import { recordRefusal } from '../sign-in/attempt-limits.ts'
import { describeGroup } from './member-pages.ts'
import { renderSessions } from './session-list.ts'
import { renderTwoFactorCard } from './two-factor-pages.ts'

const doneMessages = new Map([
  ['saved', 'Changes saved.'],
  ['password', 'Password changed. Your other sessions were signed out.'],
  ['removed', 'Two-factor authentication removed. Your other sessions were signed out.'],
  ['ended', 'Session ended.'],
])

export const showProfile: PageHandler = async (request, deps) => profilePage(request, deps)

export const changeProfile: PageHandler = (request, deps) =>
  change(request, deps, 'saved', async ({ form, user }) => {
    const to = { name: form.get('name') ?? '', email: form.get('email') ?? '' }
    await deps.users.updateProfile(user, to, currentPassword(request, 'passwordNow'))
  })

export const changePassword: PageHandler = async (request, deps) => {
  if (!deps.passwords) throw new PageForbidden('Passwords are switched off for this service.')
  return change(request, deps, 'password', async ({ form, user }) => {
    const changed = await deps.users.changePassword(
      user,
      isFreshLink(request) ? undefined : currentPassword(request),
      form.get('password') ?? '',
    )
    await request.renewSession(changed, false)
  })
}

async function change(
  request: PageRequest,
  deps: Dependencies,
  done: string,
  act: (request: PageRequest) => Promise<void>,
) {
  try {
    await act(request)
    return { location: `/profile?done=${done}` }
  } catch (error) {
    return profilePage(request, deps, toUserError(request, deps, error))
  }
}

async function profilePage(request: PageRequest, deps: Dependencies, error?: UserError): Promise<Page> {
  const { user, account, query } = request
  const message = doneMessages.get(query.get('done') ?? '')
  const lead = html`${roleTitles[user.role]} of <strong>${account.name}</strong>`
  const body = html`${heading('Profile', { lead })}
    ${message ? notice('good', message) : nothing}
    ${error && !error.member ? notice('bad', error.message) : nothing}
    ${user.email === null && user.identityIssuer === null ? notice('warning', 'Set an email address and a password so that you can sign in without a link.') : nothing}
    ${renderDetailsForm(request, error)} ${renderCredentials(request, deps, error)}
    ${await renderTwoFactorCard(request, deps)} ${await renderSessions(request, deps)}`
  return { title: 'Profile', tab: 'profile', body, status: error ? 400 : 200 }
}

function renderDetailsForm({ user, form }: PageRequest, error?: UserError): Html {
  const value = (name: 'name' | 'email') => form.get(name) ?? user[name] ?? ''
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  // Both forms report a wrong current password; only this one has an email address.
  const passwordError = form.has('email') ? errorFor('currentPassword') : undefined
  const hasPassword = user.identityIssuer === null
  return html`<form method="post" action="/profile" class="card">
    <h2>Personal details</h2>
    ${inputField({ name: 'name', label: 'Name', value: value('name'), error: errorFor('name'), required: true, autocomplete: 'name', maxlength: 100 })}
    ${inputField({ name: 'email', label: 'Email', type: 'email', value: value('email'), error: errorFor('email'), required: hasPassword, autocomplete: 'username' })}
    ${hasPassword ? inputField({ name: 'passwordNow', label: 'Current password', type: 'password', error: passwordError, autocomplete: 'current-password', hint: 'Required to change your email address.' }) : nothing}
    <div class="buttons"><button>Save changes</button></div>
  </form>`
}

/** Members who sign in by the provider have no password. */
function renderCredentials(
  request: PageRequest,
  { identityProvider, passwords }: Dependencies,
  error?: UserError,
): Html | '' {
  const { user } = request
  if (user.identityIssuer === null) return passwords ? renderPasswordForm(request, error) : nothing
  const isConfigured = user.identityIssuer === identityProvider?.issuer
  return html`<section class="card"><h2>Sign-in</h2>
    <p>You sign in with ${isConfigured ? identityProvider.name : user.identityIssuer}, which also gives you the role
      ${user.role}${user.roleFrom === null ? nothing : `, ${describeGroup(user.roleFrom)}`}.</p>
  </section>`
}

export function renderPasswordForm(request: PageRequest, error?: UserError): Html {
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  const currentError = request.form.has('email') ? undefined : errorFor('currentPassword')
  const hint = `At least ${passwordLengthMin} characters. Your other sessions are signed out.`
  return html`<form method="post" action="/profile/password" class="card">
    <h2>Password</h2>
    ${isFreshLink(request) ? nothing : currentPasswordField(request, currentError)}
    ${inputField({ name: 'password', label: 'New password', type: 'password', error: errorFor('password'), required: true, autocomplete: 'new-password', hint })}
    <div class="buttons"><button>Change password</button></div>
  </form>`
}

// The current password, which changes of a user's credentials require.

type CurrentPasswordName = 'currentPassword' | 'passwordNow'

export function currentPassword({ form }: PageRequest, name: CurrentPasswordName = 'currentPassword'): string {
  return form.get(name) ?? ''
}

/** How long after signing in with a link a user may set a password without the current one, which they have forgotten. */
const freshLinkMilliseconds = 15 * 60_000

export function isFreshLink({ session }: PageRequest): boolean {
  return session.byLink && Date.now() - session.createdAt < freshLinkMilliseconds
}

/** Records a wrong password, and rethrows all errors that are not for the user. */
export function toUserError({ user, address }: PageRequest, deps: Dependencies, error: unknown): UserError {
  if (!(error instanceof UserError)) throw error
  if (error.member === 'currentPassword') {
    recordRefusal(deps, 'current password refused', address, user, 'user.passwordRefused')
  } else if (error.member === 'currentCode') {
    recordRefusal(deps, 'sign-in code refused', address, user, 'user.secondFactorRefused')
  }
  return error
}

/** @param name differs between the forms of a page, because the field's id contains it. */
export function currentPasswordField(
  { session }: PageRequest,
  error: string | undefined,
  name: CurrentPasswordName = 'currentPassword',
): Html {
  const field = { name, label: 'Current password', error, autocomplete: 'current-password' }
  // The account's first user has no password until they set one.
  const hint = session.byLink ? 'If you have forgotten it, set another one first.' : undefined
  return inputField({ ...field, type: 'password', required: !session.byLink, hint })
}
