/** A limit per key holds while workers are killed: their runs count until their leases have expired. */
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
const concurrency = { limit: 2, per: 'key' } as const
const runsPerKey = 25
const leaseSeconds = 2
const minutesMax = 30
const unfinishedMillisecondsMax = 60_000

test.concurrent.for(stores)(
  `${kills} kills: never more than ${concurrency.limit} runs of a key at once, and every run ends once ($name)`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    const domain = await openDomain(test, { kind, workflows: [workflow({ concurrency })] })
    const { principal } = await newAccount(domain)
    const ledger = join(await newDirectory(test), 'ledger')
    const module = new URL('./complete-batches.ts', import.meta.url)
    const start = () =>
      startProcess(test, module, [
        kind.name,
        domain.location,
        ledger,
        JSON.stringify({ concurrency }),
        `${leaseSeconds}`,
      ])
    for (let run = 0; run < runsPerKey; run += 1) {
      for (const concurrencyKey of keys) await queueRun(domain, principal, { concurrencyKey })
    }

    const { read } = domain.store
    const mostAtOnce: number[] = []
    const stop = new AbortController()
    const watch = async () => {
      while (!stop.signal.aborted) {
        const groups = await read.all<{ count: number }>(
          "SELECT COUNT(*) AS count FROM runs WHERE status = 'running' GROUP BY concurrency_group",
          [],
        )
        mostAtOnce.push(...groups.map(({ count }) => count))
        await domain.maintenance.once()
        await delay(5)
      }
    }
    const watching = watch()

    await killRepeatedly(start, { kills, processes, lifeMilliseconds, seed: 19 })
    await start()
    const unfinished = "SELECT id FROM runs WHERE status IN ('queued', 'running') LIMIT 1"
    const noneIsLeft = async () => expect(await read.all(unfinished, [])).toEqual([])
    await vi.waitFor(noneIsLeft, { timeout: unfinishedMillisecondsMax, interval: 50 })
    stop.abort()
    await watching

    const ended = readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
    const ids = ended.map((line) => line.split(' ')[0])
    expect(Math.max(...mostAtOnce)).toBe(concurrency.limit)
    expect(new Set(ids).size).toBe(ids.length)
    const rows = await read.query.selectFrom('runs').select(['status', 'reason']).execute()
    const given = rows.filter(({ status, reason }) => status === 'failed' && reason === 'workerLost').length
    expect(rows.filter(({ status }) => status === 'succeeded').length + given).toBe(keys.length * runsPerKey)
  },
)
