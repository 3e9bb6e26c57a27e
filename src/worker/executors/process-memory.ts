/** The memory of a process and its descendants, as Linux counts it. */
import { openSync, readdirSync, readFileSync, readSync } from 'node:fs'

/** Memory that Node.js and the loaded workflows may use in addition to WORKFLOW_MEMORY_MB. */
export const runtimeMegabytes = 64

/**
 * Bytes of memory that processes hold for themselves, without files mapped from disk such as Node's executable; 0 where
 * there is no `/proc`. Takes 0.2 ms for a process without children.
 */
export function memoryBytes(pid: number): number {
  let bytes = 0
  for (const [, kilobytes] of read(`/proc/${pid}/status`).matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)) {
    bytes += Number(kilobytes) * 1024
  }
  for (const child of childrenOf(pid)) bytes += memoryBytes(child)
  return bytes
}

function childrenOf(pid: number): number[] {
  try {
    // Each thread has the children that it started.
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.flatMap((thread) =>
      read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

/** Whether the memory and the children of processes can be found here. Only Linux has `/proc`, and it may be hidden. */
export function canInspectProcesses(): boolean {
  return memoryBytes(process.pid) > 0
}

/** Bytes of this process's memory; without `/proc` on Linux, the most that it has ever had. */
export function ownMemoryBytes(): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return process.resourceUsage().maxRSS * 1024
  }
}

let ownFiles: (number | undefined)[] | undefined
const buffer = Buffer.alloc(1024)

/**
 * Whether this process has ever started another one, which may have outlived its own parent; true where that is unknown.
 * Takes 10 µs, because the files stay open.
 */
export function hasStartedProcesses(): boolean {
  ownFiles ??= ['stat', `task/${process.pid}/children`].map((name) => open(`/proc/self/${name}`))
  if (ownFiles.includes(undefined)) return true
  const [stat = '', children] = ownFiles.map((file) => {
    return file === undefined ? '' : buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0))
  })
  // The minor page faults of children that have ended: the ninth field after the process's name.
  const faults = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 9)[8] ?? '0'
  return children !== '' || faults !== '0'
}

function open(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch {
    // Not Linux.
    return undefined
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // The process has ended.
    return ''
  }
}
