/**
 * Kills processes that a worker has started, with all their descendants, also after the worker was killed itself.
 * Killing a process group is not enough: a browser or daemon that a workflow starts usually has its own. The search
 * finds them by a variable that they inherit, which `/proc` shows.
 *
 * A process that empties its environment is found only by its control group, where there is one (`process-cgroup.ts`).
 *
 * The search runs in a shell that outlives the worker and notices its end when their pipe closes. It uses 1 MB of memory.
 * It also removes files of the processes, with no more rights than they have.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { ownerLengthMax } from '../../storage/temporary-directory.ts'
import type { Identity } from './executor-identity.ts'
import { createCgroup, killCgroup, ProcessCgroup } from './process-cgroup.ts'

const variable = 'EXECUTION_SERVICE_PROCESS'

/**
 * Arguments: the mark of all processes, the seconds that they have to end by themselves when the pipe closes, how the
 * paths of their files begin, and their control group. Files of other users may have such a name too, and stay: some
 * versions of rm can be led out of a directory whose owner replaces a part of it by a link.
 */
const script = `
PATH=/usr/bin:/bin
sweep() {
  for pause in 0.05 0.1 0.5 1 2 5 10 10 10; do
    files=$(grep -lsF "$1" /proc/[0-9]*/environ)
    [ "$files" ] || return
    for file in $files; do
      file=\${file#/proc/}
      kill -9 "\${file%/environ}"
    done
    sleep $pause
  done 2>/dev/null
}
grace=$2
while read -r command value; do
  case $command in
    kill) sweep "$value" ;;
    remove) rm -rf "$value" ;;
    close) grace=0 ;;
  esac
done
sleep $grace
[ -z "$4" ] || for each in "$4"/*/cgroup.kill; do echo 1 > "$each"; done 2>/dev/null
sweep "$1"
[ -z "$3" ] || for each in "$3"*; do [ -O "$each" ] && rm -rf "$each"; done
`

export class ProcessReaper {
  /** Short, since it is a part of paths of sockets. */
  readonly #id = randomBytes(ownerLengthMax / 2).toString('hex')
  readonly #options: ReaperOptions
  #shell: ChildProcess | undefined
  #count = 0
  #closed = false
  /** `null` where there is none. */
  #cgroup: string | null | undefined

  constructor(options: ReaperOptions) {
    this.#options = options
  }

  /**
   * A mark for one process and its descendants, to be set in its environment.
   *
   * @param parent where the process has its own `TMPDIR`, which it creates; the process's user must own this directory.
   */
  mark(parent?: string): Mark {
    if (this.#cgroup === undefined) this.#cgroup = createCgroup(this.#id) ?? null
    this.#startShell()
    this.#count += 1
    const value = `${this.#id}.${this.#count}.`
    const directory = parent === undefined ? undefined : join(parent, String(this.#count))
    const cgroup = this.#cgroup
      ? new ProcessCgroup(this.#cgroup, String(this.#count), this.#options.identity)
      : undefined
    return {
      reaperId: this.#id,
      environment: { [variable]: value, ...(directory !== undefined && { TMPDIR: directory }) },
      add: (pid) => cgroup?.add(pid),
      kill: () => {
        cgroup?.kill()
        this.#write(`kill ${variable}=${value}`)
      },
      removeFiles: () => {
        cgroup?.remove()
        this.#write(`remove ${directory}`)
      },
    }
  }

  /** Kills all processes that are left. */
  close(): void {
    this.#closed = true
    this.#shell?.stdin?.end('close\n')
    if (this.#cgroup) killCgroup(this.#cgroup)
  }

  #write(line: string): void {
    if (!this.#closed) this.#startShell().stdin?.write(`${line}\n`)
  }

  #startShell(): ChildProcess {
    if (this.#shell) return this.#shell
    const { graceSeconds, identity, filesPrefix } = this.#options
    const files = filesPrefix?.(this.#id) ?? ''
    const marks = `${variable}=${this.#id}.`
    const shell = spawn('/bin/sh', ['-c', script, 'sh', marks, String(graceSeconds), files, this.#cgroup ?? ''], {
      ...identity,
      detached: true,
      cwd: '/',
      env: {},
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    shell.unref()
    // Written to after its end.
    shell.stdin.on('error', () => {})
    const replace = () => {
      this.#shell = undefined
    }
    shell.once('error', replace)
    shell.once('exit', replace)
    this.#shell = shell
    return shell
  }
}

interface ReaperOptions {
  /** How long processes may take to end by themselves after the worker's death. */
  graceSeconds: number
  /** The user of the processes: without further capabilities, even root cannot read other users' environments. */
  identity?: Identity
  /** How paths of files begin that are removed after all processes; called with the first mark. */
  filesPrefix?: (reaperId: string) => string
}

export interface Mark {
  reaperId: string
  environment: NodeJS.ProcessEnv
  /** Call it when the process is started, before it runs the code of workflows. */
  add(pid: number): void
  /** Kills all processes that have inherited the mark. */
  kill(): void
  /** Removes the `TMPDIR` of the process, after what `kill` has begun. */
  removeFiles(): void
}

// Names how the process of an attempt ended: an exit, a signal, or V8's heap limit.

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
