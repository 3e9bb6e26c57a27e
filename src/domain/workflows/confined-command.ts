/** How processes are started that run the code of workflows. */
import { existsSync } from 'node:fs'
import type { Identity } from './executor-identity.ts'

/** Of util-linux or BusyBox. */
const setprivPaths = ['/usr/bin/setpriv', '/bin/setpriv']

/** Keeps processes of the same user from opening the debugger, by which they could change what this one reports. */
const withoutDebugger = process.allowedNodeEnvironmentFlags.has('--disable-sigusr1') ? ['--disable-sigusr1'] : []

/**
 * The command that runs Node.js with these arguments. As another user, it cannot gain rights by programs that have the
 * set-user-ID bit, such as one that an earlier holder of the user has left.
 */
export function confinedCommand(parameters: readonly string[], identity: Identity): [string, string[]] {
  const node = [...withoutDebugger, ...parameters]
  const setpriv = identity && setprivPaths.find(existsSync)
  return setpriv ? [setpriv, ['--no-new-privs', process.execPath, ...node]] : [process.execPath, node]
}
