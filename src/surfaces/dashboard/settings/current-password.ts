/** The current password, which changes of a user's credentials require. */
import { UserError } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { type Html, inputField, nothing } from '../html.ts'
import type { PageRequest } from '../page-handler.ts'
import { recordRefusal } from '../sign-in/attempt-limits.ts'

type CurrentPasswordName = 'currentPassword' | 'passwordNow'

/** The current password in the form; `undefined` after signing in with a link, which proves the user's identity. */
export function currentPassword(
  { form, session }: PageRequest,
  name: CurrentPasswordName = 'currentPassword',
): string | undefined {
  return session.byLink ? undefined : (form.get(name) ?? '')
}

/** Records a wrong password, and rethrows all errors that are not for the user. */
export function toUserError({ user, address }: PageRequest, deps: Dependencies, error: unknown): UserError {
  if (!(error instanceof UserError)) throw error
  if (error.member === 'currentPassword') {
    recordRefusal(deps, 'current password refused', address, user, 'user.passwordRefused')
  }
  return error
}

/** @param name differs between the forms of a page, because the field's id contains it. */
export function currentPasswordField(
  { session }: PageRequest,
  error: string | undefined,
  name: CurrentPasswordName = 'currentPassword',
): Html | '' {
  if (session.byLink) return nothing
  const field = { name, label: 'Current password', error, autocomplete: 'current-password' }
  return inputField({ ...field, type: 'password', required: true })
}
