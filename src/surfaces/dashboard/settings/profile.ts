/** What users say of themselves: name, e-mail address, password. */
import { passwordLengthMin, UserError } from '../../../domain/accounts/user.ts'
import type { Parts } from '../dependencies.ts'
import { heading, inputField, notice } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { Handler, Page, Visit } from '../visit.ts'

const endings = new Map([
  ['saved', 'Saved.'],
  ['password', 'Your password is changed, and your other sessions have ended.'],
])

export function show(): Handler {
  return async (visit) => profilePage(visit)
}

export function submit({ users }: Parts): Handler {
  return async (visit) => {
    const { form, user, byLink } = visit
    const current = byLink ? undefined : (form.get('passwordNow') ?? '')
    try {
      await users.updateProfile(user, { name: form.get('name') ?? '', email: form.get('email') ?? '' }, current)
      return { location: '/profile?done=saved' }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return profilePage(visit, error)
    }
  }
}

export function submitPassword({ users }: Parts): Handler {
  return async (visit) => {
    const { form, user, byLink } = visit
    const current = byLink ? undefined : (form.get('currentPassword') ?? '')
    try {
      await users.changePassword(user, current, form.get('password') ?? '')
      await visit.signInAnew()
      return { location: '/profile?done=password' }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return profilePage(visit, error)
    }
  }
}

function profilePage(visit: Visit, refused?: UserError): Page {
  const { user, account, query } = visit
  const done = endings.get(query.get('done') ?? '')
  const body = html`${heading('You', { lead: html`${user.role === 'owner' ? 'An owner' : 'A member'} of <strong>${account.name}</strong>` })}
    ${done ? notice('good', done) : nothing}
    ${user.email === null ? notice('warning', 'Choose an e-mail address and a password, so that you can sign in without a link.') : nothing}
    ${describeForm(visit, refused)} ${passwordForm(visit, refused)}`
  return { title: 'You', tab: 'profile', body, status: refused ? 400 : 200 }
}

function describeForm({ user, form, byLink }: Visit, refused?: UserError): Html {
  const value = (name: 'name' | 'email') => form.get(name) ?? user[name] ?? ''
  const error = (name: string) => (refused?.member === name ? refused.message : undefined)
  return html`<form method="post" action="/profile" class="card">
    <h2>Who you are</h2>
    ${inputField({ name: 'name', label: 'Name', value: value('name'), error: error('name'), required: true, autocomplete: 'name', maxlength: 100 })}
    ${inputField({ name: 'email', label: 'E-mail', type: 'email', value: value('email'), error: error('email'), required: true, autocomplete: 'username' })}
    ${byLink ? nothing : inputField({ name: 'passwordNow', label: 'Present password', type: 'password', error: form.has('email') ? error('currentPassword') : undefined, autocomplete: 'current-password', hint: 'Only for another e-mail address.' })}
    <div class="buttons"><button>Save</button></div>
  </form>`
}

function passwordForm({ byLink, form }: Visit, refused?: UserError): Html {
  const error = (name: string) => (refused?.member === name ? refused.message : undefined)
  const hint = `At least ${passwordLengthMin} characters. Your other sessions end.`
  return html`<form method="post" action="/profile/password" class="card">
    <h2>Password</h2>
    ${
      byLink
        ? nothing
        : inputField({
            name: 'currentPassword',
            label: 'Present password',
            type: 'password',
            error: form.has('email') ? undefined : error('currentPassword'),
            required: true,
            autocomplete: 'current-password',
          })
    }
    ${inputField({ name: 'password', label: 'New password', type: 'password', error: error('password'), required: true, autocomplete: 'new-password', hint })}
    <div class="buttons"><button>Change password</button></div>
  </form>`
}
