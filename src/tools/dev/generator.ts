/** A process that writes generated/, with all that needs in memory: a process of its own each time takes half a second. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What the process tells: a line for each file that it changed, or why it changed none. */
export type Generated = { written: string[] } | { refused: string }

const module = fileURLToPath(new URL('./generator-process.ts', import.meta.url))

export class Generator {
  #child: ChildProcess | undefined

  async generate(): Promise<Generated> {
    const answer = (await this.#asked()) ?? (await this.#asked())
    return answer ?? { refused: 'src/tools/generate does not work; what it printed says why.' }
  }

  /** Nothing when the process ends without an answer: it may have died before it was asked. */
  async #asked(): Promise<Generated | undefined> {
    const child = this.#connected()
    const over = new AbortController()
    const { signal } = over
    const answer = once(child, 'message', { signal }).then(([generated]) => generated as Generated)
    const end = once(child, 'exit', { signal }).then(() => undefined)
    child.send('generate', () => {})
    return Promise.race([answer, end]).finally(() => over.abort())
  }

  /** The process, or another when it has ended since it was asked last. */
  #connected(): ChildProcess {
    if (this.#child?.connected) return this.#child
    const child = fork(module)
    child.once('exit', () => {
      if (this.#child === child) this.#child = undefined
    })
    this.#child = child
    return child
  }

  /** Lets the next generation be that of the code as it is then. */
  stop(): void {
    this.#child?.kill('SIGKILL')
    this.#child = undefined
  }
}
