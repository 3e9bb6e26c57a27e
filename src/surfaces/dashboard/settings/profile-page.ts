/** The user's own name, email address and password. */
import { passwordLengthMin, UserError } from '../../../domain/accounts/user.ts'
import { type Html, heading, html, inputField, nothing, notice } from '../html.ts'
import type { Page, PageHandler, PageRequest } from '../page-handler.ts'

const doneMessages = new Map([
  ['saved', 'Changes saved.'],
  ['password', 'Password changed. Your other sessions were signed out.'],
])

export const showProfile: PageHandler = async (request) => profilePage(request)

export const changeProfile: PageHandler = (request, { users }) =>
  change(request, 'saved', async ({ form, user, byLink }) => {
    const current = byLink ? undefined : (form.get('passwordNow') ?? '')
    await users.updateProfile(user, { name: form.get('name') ?? '', email: form.get('email') ?? '' }, current)
  })

export const changePassword: PageHandler = (request, { users }) =>
  change(request, 'password', async ({ form, user, byLink }) => {
    const current = byLink ? undefined : (form.get('currentPassword') ?? '')
    await users.changePassword(user, current, form.get('password') ?? '')
    await request.renewSession()
  })

async function change(request: PageRequest, done: string, act: (request: PageRequest) => Promise<void>) {
  try {
    await act(request)
    return { location: `/profile?done=${done}` }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return profilePage(request, error)
  }
}

function profilePage(request: PageRequest, error?: UserError): Page {
  const { user, account, query } = request
  const message = doneMessages.get(query.get('done') ?? '')
  const lead = html`${user.role === 'owner' ? 'Owner' : 'Member'} of <strong>${account.name}</strong>`
  const body = html`${heading('Profile', { lead })}
    ${message ? notice('good', message) : nothing}
    ${user.email === null ? notice('warning', 'Set an email address and a password so that you can sign in without a link.') : nothing}
    ${renderDetailsForm(request, error)} ${renderPasswordForm(request, error)}`
  return { title: 'Profile', tab: 'profile', body, status: error ? 400 : 200 }
}

function renderDetailsForm({ user, form, byLink }: PageRequest, error?: UserError): Html {
  const value = (name: 'name' | 'email') => form.get(name) ?? user[name] ?? ''
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  // Both forms report a wrong current password; only this one has an email address.
  const passwordError = form.has('email') ? errorFor('currentPassword') : undefined
  return html`<form method="post" action="/profile" class="card">
    <h2>Personal details</h2>
    ${inputField({ name: 'name', label: 'Name', value: value('name'), error: errorFor('name'), required: true, autocomplete: 'name', maxlength: 100 })}
    ${inputField({ name: 'email', label: 'Email', type: 'email', value: value('email'), error: errorFor('email'), required: true, autocomplete: 'username' })}
    ${byLink ? nothing : inputField({ name: 'passwordNow', label: 'Current password', type: 'password', error: passwordError, autocomplete: 'current-password', hint: 'Required to change your email address.' })}
    <div class="buttons"><button>Save changes</button></div>
  </form>`
}

function renderPasswordForm({ byLink, form }: PageRequest, error?: UserError): Html {
  const errorFor = (name: string) => (error?.member === name ? error.message : undefined)
  const currentError = form.has('email') ? undefined : errorFor('currentPassword')
  const hint = `At least ${passwordLengthMin} characters. Your other sessions are signed out.`
  return html`<form method="post" action="/profile/password" class="card">
    <h2>Password</h2>
    ${byLink ? nothing : inputField({ name: 'currentPassword', label: 'Current password', type: 'password', error: currentError, required: true, autocomplete: 'current-password' })}
    ${inputField({ name: 'password', label: 'New password', type: 'password', error: errorFor('password'), required: true, autocomplete: 'new-password', hint })}
    <div class="buttons"><button>Change password</button></div>
  </form>`
}
