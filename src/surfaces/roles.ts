/** The roles that a process of the service may have. By default, one process has all of them. */

export const roles = ['execution', 'browser-context', 'dashboard', 'worker'] as const

export type Role = (typeof roles)[number]

export type Surface = Exclude<Role, 'worker'>

export const surfaces = {
  dashboard: { title: 'Dashboard', port: 'DASHBOARD_PORT', url: 'DASHBOARD_URL' },
  execution: { title: 'Execution API', port: 'EXECUTION_PORT', url: 'EXECUTION_URL' },
  'browser-context': { title: 'Browser Context API', port: 'BROWSER_CONTEXT_PORT', url: 'BROWSER_CONTEXT_URL' },
} as const satisfies Record<Surface, object>

/** Where readers of pages and docs reach each surface, whichever process serves it. */
export interface Addresses {
  dashboardUrl: string
  executionUrl: string
  browserContextUrl: string
}

/** An unknown role; the message lists the known ones. */
export class RoleError extends Error {}

/**
 * @param lists values of `--only`, each a role or several separated by commas; none for all roles.
 * @throws {RoleError}
 */
export function readRoles(lists: readonly string[]): ReadonlySet<Role> {
  if (lists.length === 0) return new Set(roles)
  return new Set(lists.flatMap((list) => list.split(',')).map(parseRole))
}

function parseRole(text: string): Role {
  const role = roles.find((each) => each === text.trim())
  if (role) return role
  throw new RoleError(`Unknown role "${text}" in --only. The roles are ${roles.join(', ')}.`)
}
