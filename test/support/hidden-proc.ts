/** Runs processes of the service without `/proc`, which is missing on macOS, in a mount namespace. */
import { execFileSync } from 'node:child_process'

const hide = [
  'unshare',
  '--user',
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  'mount -t tmpfs tmpfs /proc && exec "$@"',
  'sh',
]

/** What to begin a command with; the reason if this machine does not allow it. */
export function commandWithoutProc(): string[] | string {
  const [program = '', ...args] = [...hide, 'sh', '-c', '[ ! -e /proc/self ]']
  try {
    execFileSync(program, args, { stdio: 'pipe' })
    return hide
  } catch (error) {
    return `/proc cannot be hidden here (${(error as Error).message.split('\n').at(-2) ?? 'unshare failed'})`
  }
}
