/** What a process of the service may do. Without a choice, one process does everything. */

export const roles = ['execution', 'browser-context', 'dashboard', 'worker'] as const

export type Role = (typeof roles)[number]

/** A role that is served on a port of its own. */
export type Surface = Exclude<Role, 'worker'>

/** What each surface is called, and the settings that say where it is. */
export const surfaces = {
  dashboard: { title: 'Dashboard', port: 'DASHBOARD_PORT', url: 'DASHBOARD_URL' },
  execution: { title: 'Execution API', port: 'EXECUTION_PORT', url: 'EXECUTION_URL' },
  'browser-context': { title: 'Browser Context API', port: 'BROWSER_CONTEXT_PORT', url: 'BROWSER_CONTEXT_URL' },
} as const satisfies Record<Surface, object>

/** A role that does not exist; the message says which there are. */
export class RoleError extends Error {}

/**
 * @param named roles as they are given on the command line, each for itself or several with commas; none for all.
 * @throws {RoleError}
 */
export function readRoles(named: readonly string[]): ReadonlySet<Role> {
  if (named.length === 0) return new Set(roles)
  return new Set(named.flatMap((words) => words.split(',')).map(roleOf))
}

function roleOf(word: string): Role {
  const role = roles.find((each) => each === word.trim())
  if (role) return role
  throw new RoleError(`--only names "${word}", which is no role: name some of ${roles.join(', ')}.`)
}
