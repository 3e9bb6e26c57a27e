/**
 * The processes of the versions of the service: the one that serves, one that is warmed up for the next, and those that
 * finish what they have begun. The ports belong to this process and stay open between versions.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { VersionNews } from './version-process.ts'

/** What a version has for its start, and for closing its ports: ten times what either takes. */
const answerSeconds = 10

export class Versions {
  readonly #onEnd: (code: number | null, signal: string | null) => void
  #next: Worker | undefined
  #serving: Worker | undefined
  #stopping = false

  /** @param onEnd is called when the version that serves ends by itself. */
  constructor(onEnd: (code: number | null, signal: string | null) => void) {
    cluster.setupPrimary({ exec: fileURLToPath(new URL('./version-process.ts', import.meta.url)), args: [] })
    this.#onEnd = onEnd
  }

  /**
   * Lets the code as it is now serve. Resolves when it accepts requests, and the version before accepts none any more;
   * or with the reason why it cannot, and then the version before goes on.
   */
  async replace(): Promise<string | undefined> {
    const version = this.#next?.isDead() === false ? this.#next : cluster.fork()
    const before = this.#serving
    // One that dies meanwhile is told by its end.
    version.send({ greet: before === undefined }, () => {})
    const news = await newsOf(version)
    if (this.#stopping) return new Promise(() => {})
    if ('serving' in news) {
      this.#serving = version
      version.once('exit', (code, signal) => {
        if (this.#serving !== version || this.#stopping) return
        this.#serving = undefined
        this.#onEnd(code, signal)
      })
      before?.process.kill('SIGTERM')
      if (before && !before.isDead()) await newsOf(before)
    }
    // Code that held up this version would hold up one that is warmed up with it.
    this.#next = 'refused' in news && news.late ? undefined : cluster.fork()
    return 'refused' in news ? news.refused : undefined
  }

  /** Ends every version, each as gently as it can be. */
  async stop(): Promise<void> {
    this.#stopping = true
    const versions = Object.values(cluster.workers ?? {}).filter((it) => it !== undefined)
    const ended = versions.map((version) => once(version, 'exit'))
    for (const version of versions) version.process.kill('SIGTERM')
    await Promise.all(ended)
  }
}

/** What the version tells next; it may end instead, and is ended when it does neither in time. */
async function newsOf(version: Worker): Promise<VersionNews> {
  const over = new AbortController()
  const { signal } = over
  let late = false
  const timer = setTimeout(() => {
    late = true
    version.process.kill('SIGKILL')
  }, answerSeconds * 1000)
  const told = once(version, 'message', { signal }).then(([news]) => news as VersionNews)
  const ended = once(version, 'exit', { signal }).then(([code]): VersionNews => {
    if (late) return { refused: `It has not started within ${answerSeconds} s, and was ended.`, late }
    return { refused: `It ended at its start (exit code ${code}); what it printed says why.` }
  })
  return Promise.race([told, ended]).finally(() => {
    clearTimeout(timer)
    over.abort()
  })
}
