/** Roles of an account's members: what each may do, and which scopes an API key can have that such a member creates. */

import { roleNames } from '../../config/sign-in-settings.ts'

/** Each role may do everything that those before it may. */
export const roles = roleNames

export type Role = (typeof roles)[number]

export const roleTitles: Record<Role, string> = {
  viewer: 'Viewer',
  operator: 'Operator',
  developer: 'Developer',
  admin: 'Admin',
}

/** What each role adds to the one before it. */
export const roleDescriptions: Record<Role, string> = {
  viewer: 'Sees everything except the audit log and values of secrets.',
  operator:
    'Also queues, cancels and deletes runs, uploads files, answers runs that wait, takes over browsers, and creates API keys.',
  developer:
    'Also changes schedules, webhooks, browser contexts, secrets and settings, and deploys workflows with API keys.',
  admin: 'Also manages members, their roles, the account, and API keys of others, and reads the audit log.',
}

export function toRole(text: string | null | undefined): Role | undefined {
  return roles.find((role) => role === text)
}

/** Whether a member with the role may do what needs `needed`. */
export function includesRole(role: Role | null, needed: Role): boolean {
  return role !== null && roles.indexOf(role) >= roles.indexOf(needed)
}

/** The scopes that operators' keys may have besides those that read. Developers' keys may have all. */
const operatorScopes = ['runs:write', 'files:write', 'waits:write', 'browser-contexts:use']

export function permitsScope(role: Role, scope: string): boolean {
  if (includesRole(role, 'developer') || scope.endsWith(':read')) return true
  return role === 'operator' && operatorScopes.includes(scope)
}

/**
 * The scopes of a key as far as the role of its creator permits them; `null` for all scopes.
 *
 * @param scopes those that the key was created with; `null` for all.
 * @param role `undefined` when the creator has no role, and the key therefore no scope.
 */
export function effectiveScopes(
  scopes: readonly string[] | null,
  role: Role | undefined,
  knownScopes: readonly string[],
): string[] | null {
  if (role === undefined) return []
  if (scopes === null && includesRole(role, 'developer')) return null
  return (scopes ?? knownScopes).filter((scope) => permitsScope(role, scope))
}
