/** Names how the process of an attempt ended: an exit, a signal, or V8's heap limit. */

export interface ProcessEnd {
  name: string
  message: string
}

const fatalHeapError = /^FATAL ERROR: .*heap out of memory/

/** What V8 and Node.js print when the heap is full: collections, addresses and paths of the service's own binary. */
const heapReport =
  /^$|^<--- .* --->$|^\[\d+:0x[0-9a-f]+\] +\d+ ms: |^FATAL ERROR: |^----- .* stack trace -----$|^ ?\d+: 0x[0-9a-f]+ /

/** Signals of a process that ends itself, and the exit codes with which a shell passes them on. */
const abortEnds: unknown[] = ['SIGABRT', 'SIGTRAP', 'SIGILL', 132, 133, 134]

/** Reads the standard error of a process. */
export class HeapReport {
  #isHeapFull = false

  /** Whether the line belongs to the report of a full heap, or is empty. */
  has(line: string): boolean {
    if (fatalHeapError.test(line)) this.#isHeapFull = true
    return heapReport.test(line)
  }

  describeEnd(code: number | null, signal: NodeJS.Signals | null, memoryMegabytesMax: number): ProcessEnd {
    if (this.#isHeapFull && abortEnds.includes(signal ?? code)) {
      const limit = `the heap limit of ${memoryMegabytesMax} MB, which WORKFLOW_MEMORY_MB sets`
      return { name: 'HeapLimit', message: `The workflow reached ${limit}.` }
    }
    if (signal === null) return { name: 'ProcessExit', message: `The workflow's process exited with code ${code}.` }
    const cause = signal === 'SIGKILL' ? ', for example because the machine ran out of memory' : ''
    return { name: 'ProcessKilled', message: `The workflow's process was killed by ${signal}${cause}.` }
  }
}
