/** Memory of other processes, from /proc. */
import { readFileSync } from 'node:fs'

/** Returns the resident memory of a process in megabytes. */
export function megabytesOf({ pid }: { pid: number }): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1024
}
