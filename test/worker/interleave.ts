/** Runs that call others, sleep and race, with cancellations, lost leases, an unavailable store and stops in any order. */
import { expect } from 'vitest'
import type { Worker } from '../../src/worker/worker.ts'
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
  /** The called run takes longer than the time limit of its caller. */
  patient: async ({ call }) => call('steady', 'steady'),
  steady: async () => pause(1500),
  nested: async ({ call }) => call('next', 'once'),
  once: async ({ call }) => call('leaf', 'slow'),
  race: async ({ call }) => Promise.race([call('raced', 'slow'), pause(10)]),
  detached: async ({ call }) => Promise.race([call('raced', 'leaf', {}, { detached: true }), pause(3)]),
  loop: async ({ call }) => {
    for (let index = 0; index < 40; index += 1) await call(`call ${index}`, 'leaf')
  },
  both: async ({ call }) => Promise.all([call('a', 'leaf'), call('b', 'nested')]),
  sleeper: async ({ sleep, call }) => {
    await sleep('short', { seconds: 0.1 })
    await sleep('long', { seconds: 4 })
    await call('then', 'leaf')
  },
  /** Steps end while a call waits for earlier ones to be stored. */
  busy: async ({ step, call }) => {
    const two = async () => {
      await step('b', () => 2)
      await step('c', () => 3)
    }
    await Promise.all([step('a', () => 1), two(), call('beside', 'leaf')])
  },
  mixed: async ({ step, call }) => {
    await step('before', () => 1)
    await call('failing', 'fails').catch(() => {})
    // Not awaited by the end of the run.
    void step('left behind', () => pause(5)).catch(() => {})
    await Promise.race([call('long', 'long'), pause(30)])
  },
}
const callers = ['patient', 'nested', 'once', 'race', 'detached', 'loop', 'both', 'sleeper', 'busy', 'mixed'] as const

const slots = 2

/** Every run ends once, and the worker has all of its slots again. */
async function interleave(seed: number): Promise<void> {
  const random = seededRandom(seed)
  const scheduler = new Scheduler(random)
  try {
    const queue = new ModelQueue(scheduler, workflows, slots)
    const isCalm = scheduler.isPatient && scheduler.isLikely(0.5)
    if (isCalm) queue.faults = 0
    for (let count = 0; count < 4; count += 1) queue.add(workflows[scheduler.pick(callers) ?? ''] as Workflow)
    const disturb = () => {
      const run = isCalm ? undefined : scheduler.pick(queue.runs)
      if (run && scheduler.isLikely(0.003)) queue.cancel(run)
      if (run && scheduler.isLikely(0.002)) queue.loseLease(run)
      return queue.hasEnded
    }
    let worker = createInterleavedWorker(scheduler, queue, 'first', slots)
    await worker.start()
    if (!isCalm && scheduler.isLikely(0.3)) {
      let left = Math.floor(random() * 200)
      await scheduler.until(() => left-- < 0 || disturb())
      await stop(worker, 'first', { scheduler, queue })
      worker = createInterleavedWorker(scheduler, queue, 'second', slots)
      await worker.start()
    }
    await scheduler.until(disturb)
    queue.faults = 0
    await scheduler.until(() => queue.free() === slots)
    expect([...queue.attempts.violations]).toEqual([])
    const failed = queue.runs.filter(({ parent, status }) => !parent && status !== 'succeeded').map(({ id }) => id)
    if (isCalm) expect(failed).toEqual([])
  } finally {
    scheduler.close()
  }
}

async function stop(worker: Worker, id: string, { scheduler, queue }: { scheduler: Scheduler; queue: ModelQueue }) {
  const graceSeconds = scheduler.random()
  const begunAt = Date.now()
  let hasStopped = false
  queue.attempts.stopping.add(id)
  void worker.stop(graceSeconds).then(() => {
    hasStopped = true
  })
  await scheduler.until(() => hasStopped)
  // After the grace period and five seconds, a worker leaves what the store does not take to others.
  if (Date.now() - begunAt < graceSeconds * 1000 + 5000) expect(queue.attempts.of(id)).toEqual([])
}

/** @throws {Error} that names the seed. */
export async function interleaveAll(count: number): Promise<void> {
  for (let seed = 0; seed < count; seed += 1) {
    await interleave(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed.`, { cause })
    })
  }
}
