/** Kills processes repeatedly, each at a random time after its start. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { seededRandom } from './seeded-random.ts'

interface Kills {
  /** How many processes are started and killed. */
  kills: number
  /** How many of them run at the same time. */
  processes: number
  /** Time from the start of a process until it is killed. */
  lifeMilliseconds: { min: number; max: number }
  /** The same seed gives the same times. */
  seed: number
}

/** Resolves when the last process has exited. */
export async function killRepeatedly(
  start: () => Promise<ChildProcess>,
  { kills, processes, lifeMilliseconds: { min, max }, seed }: Kills,
): Promise<void> {
  const number = seededRandom(seed)
  let killed = 0
  const lane = async () => {
    while (killed < kills) {
      killed += 1
      const process = await start()
      await delay(min + number() * (max - min))
      const exited = once(process, 'exit')
      process.kill('SIGKILL')
      await exited
    }
  }
  await Promise.all(Array.from({ length: processes }, lane))
}
