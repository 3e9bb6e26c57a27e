/**
 * The processes of the versions of the service: the one that serves, one that is warmed up for the next, and those that
 * finish what they have begun. The ports belong to this process and stay open between versions.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { VersionNews } from './version-process.ts'

/** A version that has ended without a word. */
interface Ended {
  refused: string
  late: boolean
  ended: true
}
type News = VersionNews | Ended

/** What a version has for its start, and for closing its ports: ten times what either takes on a busy machine. */
const answerSeconds = 30

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
    const before = this.#serving
    let version = this.#next?.isDead() === false ? this.#next : cluster.fork()
    let news = await newsAfterAsking(version, before)
    // It may have died before it was asked.
    if (version === this.#next && 'ended' in news && !news.late && !this.#stopping) {
      version = cluster.fork()
      news = await newsAfterAsking(version, before)
    }
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
    this.#next = 'ended' in news && news.late ? undefined : cluster.fork()
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

/** What the version tells when it is asked to serve; the first one greets. */
function newsAfterAsking(version: Worker, before: Worker | undefined): Promise<News> {
  // One that dies meanwhile is told by its end.
  version.send({ greet: before === undefined }, () => {})
  return newsOf(version)
}

/** What the version tells next; it may end instead, and is ended when it does neither in time. */
async function newsOf(version: Worker): Promise<News> {
  const over = new AbortController()
  const { signal } = over
  let late = false
  const timer = setTimeout(() => {
    late = true
    version.process.kill('SIGKILL')
  }, answerSeconds * 1000)
  const told = once(version, 'message', { signal }).then(([news]) => news as VersionNews)
  const ended = once(version, 'exit', { signal }).then(([code, endedBy]): Ended => {
    const refused = late
      ? `It has not started within ${answerSeconds} s, and was ended.`
      : `It ended at its start (${endedBy ?? `exit code ${code}`}); what it printed says why.`
    return { refused, late, ended: true }
  })
  return Promise.race([told, ended]).finally(() => {
    clearTimeout(timer)
    over.abort()
  })
}
