/** Browser contexts whose runs are killed: each has what the last successful run has stored, as a whole. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { installedChromium, openBrowsing, type Visited } from '../support/browsing.ts'
import type { Test } from '../support/domain.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { startWorkerProcess, waitForRun, waitForStart } from '../support/worker.ts'

const hasBundled = process.platform === 'linux' && process.arch === 'x64'
/** A directory without browsers: that from npm is the last to be tried. */
const notInstalled = async () => '/nonexistent'

const browsers: [name: string, directoryOnPath: (test: Test) => Promise<string>][] = [
  ['from npm', notInstalled],
  ['that is installed', installedChromium],
]

const killsOfEach = 6
/** After the run has stored its value in the browser: while the browser is read, the state staged, or the run completed. */
const delayMillisecondsMax = 400

test.runIf(hasBundled).for(browsers)(
  'a context of a browser %s has the state of the last run that succeeded, whenever workers and executors are killed',
  { timeout: 300_000 },
  async ([name, directoryOnPath], test) => {
    const site = await openBrowsing(test)
    const contextId = await site.createContext()
    const PATH = await directoryOnPath(test)
    const number = seededRandom(name.length)
    let kept: string | undefined
    let successes = 0
    const before = (value: string | undefined) => ({
      ...{ local: value ?? '', database: value ?? '', session: '' },
      cookies: value === undefined ? '' : `visit=${value}`,
    })
    let worker: ChildProcess | undefined
    const kill = async (executor: number, killsWorker: boolean) => {
      await delay(number() * delayMillisecondsMax)
      if (killsWorker && worker) {
        worker.kill('SIGKILL')
        await once(worker, 'exit')
        worker = undefined
      } else {
        try {
          process.kill(executor, 'SIGKILL')
        } catch {
          // It has ended.
        }
      }
    }
    const ends: string[] = []
    for (let count = 0; count < 2 * killsOfEach; count += 1) {
      worker ??= await startWorkerProcess(test, site.domain, { PATH })
      const [value, started] = [`value-${count}`, site.file(`started ${count}`)]
      const run = await site.visit({ contextId, value, started })
      await kill(await waitForStart(started), count % 2 === 0)
      worker ??= await startWorkerProcess(test, site.domain, { PATH })
      const { status, attempts, output } = await waitForRun(site.domain, run)
      ends.push(`${status} (${attempts})`)
      if (status === 'succeeded') {
        expect((output as Visited).before).toEqual(before(kept))
        kept = value
        successes += 1
      }
      const read = () => site.visited({ contextId, persist: 'never' })
      // The worker may not have noticed yet that its idle executor was killed.
      const reader = await read().catch(read)
      expect(reader.before, `after ${ends}`).toEqual(before(kept))
      expect(await site.context(contextId)).toMatchObject({ version: successes || null, heldByRunId: null })
    }
    // Some kills hit a run: a lost worker's run is repeated, and a killed executor fails its run.
    expect(ends).toContain('succeeded (2)')
    expect(ends).toContain('failed (1)')
  },
)
