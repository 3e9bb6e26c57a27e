/** Threads for work on callers' schemas that would take the thread which serves requests too long. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { FairRunner } from './fair-runner.ts'

const threads = new FairRunner({ concurrency: 2, perAccountMax: Number.POSITIVE_INFINITY })

const secondsMax = 60
/** Code of schemas nests as deep as objects have members. */
const resourceLimits = { maxOldGenerationSizeMb: 512, stackSizeMb: 16 }

/**
 * Runs a module in a thread, when the account may have one. Messages are missing if the thread fails, or uses up its time or
 * memory.
 *
 * @param url of the module, without its extension: `.ts` here, `.js` in the package.
 * @param accountId `null` for the installation.
 * @returns why messages may be missing.
 */
export function runInThread<Message>(
  url: URL,
  accountId: string | null,
  workerData: unknown,
  onMessage: (message: Message) => void,
): Promise<Error | undefined> {
  return threads.run(accountId, async () => {
    const thread = new Worker(new URL(url.href + extname(import.meta.url)), { workerData, resourceLimits })
    let failure: Error | undefined
    const timer = setTimeout(() => {
      failure = new Error(`The thread did not end within ${secondsMax} seconds.`)
      void thread.terminate()
    }, secondsMax * 1000)
    await new Promise<void>((resolve) => {
      thread.on('message', onMessage)
      thread.once('error', (error) => {
        failure = error
      })
      thread.once('exit', () => resolve())
    })
    clearTimeout(timer)
    return failure
  })
}
