/** Waits, calls, ends, lost leases and stops in any order: every run ends once, and the worker has all of its slots again. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededRandom } from '../support/seeded-random.ts'
import { createInterleavedWorker, ModelQueue, Scheduler, type Workflow } from './interleaved-worker.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const workflows: Record<string, Workflow> = {
  leaf: async () => 1,
  slow: async () => pause(50),
  /** Longer than a caller stays in its process. */
  long: async ({ sleep }) => sleep('pause', { seconds: 3 }),
  fails: async () => {
    throw new Error('It fails.')
  },
  nested: async ({ call }) => call('next', 'once'),
  once: async ({ call }) => call('leaf', 'slow'),
  race: async ({ call }) => Promise.race([call('raced', 'slow'), pause(10)]),
  detached: async ({ call }) => Promise.race([call('raced', 'leaf', {}, { detached: true }), pause(3)]),
  loop: async ({ call }) => {
    for (let index = 0; index < 200; index += 1) await call(`call ${index}`, 'leaf')
  },
  both: async ({ call }) => Promise.all([call('a', 'leaf'), call('b', 'nested')]),
  sleeper: async ({ sleep, call }) => {
    await sleep('short', { seconds: 0.1 })
    await sleep('long', { seconds: 4 })
    await call('then', 'leaf')
  },
  mixed: async ({ step, call }) => {
    await step('before', () => 1)
    await call('failing', 'fails').catch(() => {})
    // Not awaited by the end of the run.
    void step('left behind', () => pause(5)).catch(() => {})
    await Promise.race([call('long', 'long'), pause(30)])
  },
}
const callers = ['nested', 'once', 'race', 'detached', 'loop', 'both', 'sleeper', 'mixed'] as const

const slots = 2

async function interleave(seed: number): Promise<void> {
  const random = seededRandom(seed)
  const scheduler = new Scheduler(random)
  try {
    const queue = new ModelQueue(scheduler, workflows)
    for (let count = 0; count < 4; count += 1) queue.add(workflows[scheduler.pick(callers) ?? ''] as Workflow)
    const stops = scheduler.isLikely(0.2)
    let worker = createInterleavedWorker(scheduler, queue, 'first', slots)
    const disturb = () => {
      const run = scheduler.pick(queue.runs)
      if (run && scheduler.isLikely(0.003)) queue.cancel(run)
      if (run && scheduler.isLikely(0.002)) queue.loseLease(run)
      return queue.hasEnded
    }
    await worker.start()
    if (stops) {
      let left = Math.floor(random() * 200)
      await scheduler.until(() => {
        left -= 1
        return disturb() || left < 0
      })
      let hasStopped = false
      void worker.stop(random()).then(() => {
        hasStopped = true
      })
      await scheduler.until(() => hasStopped)
      worker = createInterleavedWorker(scheduler, queue, 'second', slots)
      await worker.start()
    }
    await scheduler.until(disturb)
    queue.faults = 0
    // All slots at once are needed for these to end.
    await scheduler.until(() => freeOf(queue) === slots)
  } finally {
    scheduler.close()
  }
}
