/** A rate per key holds while workers are killed: a start that was stored counts, whatever becomes of its worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { newAccount, newDirectory, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { killRepeatedly } from '../../support/killed-processes.ts'
import { startProcess } from '../../support/processes.ts'
import { stores } from '../../support/store-kinds.ts'

const kills = process.env.TEST_SET === 'reliability' ? 200 : 12
const processes = 3
const lifeMilliseconds = { min: 50, max: 400 }
const keys = ['a', 'b', 'c', 'd']
const throttle = { limit: 5, periodSeconds: 1, per: 'key' } as const
const runsPerKey = kills > 12 ? 150 : 20
const leaseSeconds = 2
const minutesMax = 30
const unfinishedMillisecondsMax = 300_000

test.concurrent.for(stores)(
  `${kills} kills: no second has more than ${throttle.limit} starts of a key, and every run ends once ($name)`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const domain = await openDomain(test, { kind, workflows: [workflow({ throttle })] })
    const { principal } = await newAccount(domain)
    const ledger = join(await newDirectory(test), 'ledger')
    const module = new URL('./complete-batches.ts', import.meta.url)
    const start = () =>
      startProcess(test, module, [kind.name, domain.location, ledger, JSON.stringify({ throttle }), `${leaseSeconds}`])
    for (let run = 0; run < runsPerKey; run += 1) {
      for (const concurrencyKey of keys) await queueRun(domain, principal, { concurrencyKey })
    }

    const { read } = domain.store
    const stop = new AbortController()
    const maintain = async () => {
      while (!stop.signal.aborted) {
        await domain.maintenance.once()
        await delay(20)
      }
    }
    const maintaining = maintain()

    await killRepeatedly(start, { kills, processes, lifeMilliseconds, seed: 27 })
    await start()
    const unfinished = "SELECT id FROM runs WHERE status IN ('queued', 'running') LIMIT 1"
    const noneIsLeft = async () => expect(await read.all(unfinished, [])).toEqual([])
    await vi.waitFor(noneIsLeft, { timeout: unfinishedMillisecondsMax, interval: 50 })
    stop.abort()
    await maintaining

    const ids = readFileSync(ledger, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[0])
    expect(new Set(ids).size).toBe(ids.length)
    const started = await read.all<{ concurrency_group: string; at: number }>(
      `SELECT concurrency_group, at FROM run_events JOIN runs ON runs.id = run_id
        WHERE type = 'status' AND data LIKE '%"status":"running"%' ORDER BY at`,
      [],
    )
    const byKey = Map.groupBy(started, ({ concurrency_group }) => concurrency_group)
    expect(byKey.size).toBe(keys.length)
    for (const starts of byKey.values()) {
      expect(starts.length).toBeGreaterThanOrEqual(runsPerKey)
      const next = starts.slice(throttle.limit).map(({ at }, index) => at - (starts[index]?.at ?? 0))
      expect(Math.min(...next)).toBeGreaterThanOrEqual(throttle.periodSeconds * 1000)
    }
  },
)
