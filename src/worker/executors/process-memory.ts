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

interface ProcessUse {
  /** Whether this process has ever started another one, which may have outlived its own parent; true where unknown. */
  hasStarted: boolean
  /** Bytes of its memory; without `/proc` on Linux, the most that it has ever had. */
  bytes: number
}

let ownFiles: (number | undefined)[] | undefined
let pageBytes = 0
const buffer = Buffer.alloc(1024)

/** What this process uses. Takes 6 µs, because the files stay open. */
export function processUse(): ProcessUse {
  ownFiles ??= ['stat', `task/${process.pid}/children`].map((name) => open(`/proc/self/${name}`))
  if (ownFiles.includes(undefined)) return { hasStarted: true, bytes: process.resourceUsage().maxRSS * 1024 }
  const [stat = '', children] = ownFiles.map((file) => {
    return file === undefined ? '' : buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0))
  })
  // proc_pid_stat(5), from the field after the process's name: cminflt is the 9th, and rss the 22nd.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 22)
  const [faultsOfChildren = '0', pages = '1'] = [fields[8], fields[21]]
  pageBytes ||= 2 ** Math.round(Math.log2(process.memoryUsage.rss() / Number(pages)))
  return { hasStarted: children !== '' || faultsOfChildren !== '0', bytes: Number(pages) * pageBytes }
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
