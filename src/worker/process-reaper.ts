/**
 * Kills processes that a worker has started, with all their descendants, also after the worker was killed itself. A
 * process group does not hold them: a browser or daemon that a workflow starts usually has its own. They are found by a
 * variable that they inherit, which `/proc` shows.
 *
 * The search runs in a shell that outlives the worker and notices its end when their pipe closes. It uses 1 MB of memory.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'

/** The user and group that a process runs as; `undefined` for those of the worker. */
export type Identity = { uid: number; gid: number } | undefined

const variable = 'EXECUTION_SERVICE_PROCESS'

/** Arguments: the mark of all processes, and the seconds that they have to end by themselves when the pipe closes. */
const script = `
PATH=/usr/bin:/bin
sweep() {
  for pause in 0 1 1 2 5 10 10 10 10; do
    sleep $pause
    files=$(grep -lsF "$1" /proc/[0-9]*/environ)
    [ "$files" ] || return
    for file in $files; do
      file=\${file#/proc/}
      kill -9 "\${file%/environ}"
    done 2>/dev/null
  done
}
grace=$2
while read -r mark; do
  if [ "$mark" = close ]; then grace=0; else sweep "$mark"; fi
done
sleep $grace
sweep "$1"
`

export class ProcessReaper {
  readonly #prefix = `${variable}=${randomUUID()}`
  readonly #graceSeconds: number
  readonly #identity: Identity
  #shell: ChildProcess | undefined
  #count = 0
  #closed = false

  /**
   * @param graceSeconds how long processes may take to end by themselves after the worker's death.
   * @param identity that of the processes: without more capabilities, even root cannot read another user's environments.
   */
  constructor(graceSeconds: number, identity?: Identity) {
    this.#graceSeconds = graceSeconds
    this.#identity = identity
  }

  /** A mark for one process and its descendants, to be set in its environment. */
  mark(): Mark {
    this.#shell ??= this.#start()
    this.#count += 1
    const mark = `${this.#prefix}.${this.#count}.`
    const write = () => void (this.#closed || this.#shell?.stdin?.write(`${mark}\n`))
    return { environment: { [variable]: mark.slice(variable.length + 1) }, kill: write }
  }

  /** Kills all processes that are left. */
  close(): void {
    this.#closed = true
    this.#shell?.stdin?.end('close\n')
  }

  #start(): ChildProcess {
    const shell = spawn('/bin/sh', ['-c', script, 'sh', this.#prefix, String(this.#graceSeconds)], {
      ...this.#identity,
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
    return shell
  }
}

interface Mark {
  environment: NodeJS.ProcessEnv
  /** Kills all processes that have inherited the mark. */
  kill(): void
}
