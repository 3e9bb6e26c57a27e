/** P20: what one account runs and how much it queues keeps no other account waiting or failing. */
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import {
  newLedger,
  queueRun,
  readOutcome,
  startCallers,
  untilAcknowledged,
  waitForOutcome,
} from '../../support/ledger.ts'
import { megabytesOf } from '../../support/process-memory.ts'
import { until } from '../../support/service.ts'
import { record } from '../figures.ts'
import { type FloodData, floods } from './flood.ts'

const probes = 100
const pauseMilliseconds = 20
/** How much longer the neighbour's median request may take than before the flood. */
const ratioMax = 3
/** Below this, the ratio says more about the machine than about the service. */
const millisecondsMin = 50
/** How much the service or its worker may grow. */
const megabytesMax = 300
const queuedRuns = 10_000
/** For the start of a run, as `millisecondsMin` for a request. */
const startMillisecondsMin = 250

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test.for(floods)('%s keep another account neither waiting nor failing', async (flood, test) => {
    const fleet = await newFleet(test, kind)
    const [attacker, neighbour] = [await fleet.createAccount(), await fleet.createAccount()]
    const [api, worker] = [await fleet.api(), await fleet.worker()]
    const { executionUrl } = api
    const ids: string[] = []
    const failed: number[] = []
    let megabytes = 0
    /** Queues a run now and then, and reads the last one; returns the median duration of a request. */
    const probe = async () => {
      const times: number[] = []
      for (let count = 0; count < probes; count += 1) {
        const began = performance.now()
        if (count % 10 === 0) {
          const queued = await queueRun(executionUrl, neighbour.key, 'greet', { name: 'Ada' })
          if (queued?.status === 202 && queued.id) ids.push(queued.id)
          else failed.push(queued?.status ?? 0)
        } else {
          const authorization = { Authorization: `Bearer ${neighbour.key}` }
          const response = await fetch(`${executionUrl}/v1/execution/runs/${ids.at(-1)}`, { headers: authorization })
          await response.arrayBuffer()
          if (response.status !== 200) failed.push(response.status)
        }
        times.push(performance.now() - began)
        megabytes = Math.max(megabytes, megabytesOf(api), megabytesOf(worker))
        await delay(pauseMilliseconds)
      }
      return median(times)
    }
    await probe()
    const before = await probe()
    const megabytesBefore = megabytes
    const sent = new Int32Array(new SharedArrayBuffer(4))
    const workerData: FloodData = { flood, executionUrl, key: attacker.key, sent }
    const thread = new Worker(new URL('./flood.ts', import.meta.url), { workerData })
    test.onTestFinished(() => void thread.terminate())
    await until('the flood has begun', () => Atomics.load(sent, 0) > 20)
    const during = await probe()
    const requests = Atomics.load(sent, 0)
    await thread.terminate()
    const outcome = await fleet.withStore((store) => waitForOutcome(store, ids))
    const lost = ids.length - outcome.succeeded
    record({
      promise: 'P20',
      store: kind.name,
      fault: flood,
      figures: { acknowledged: ids.length, lost, refused: failed.length },
      remark: `${requests} requests; neighbour's median ${before.toFixed(1)} ms before, ${during.toFixed(1)} ms during; memory ${Math.round(megabytesBefore)} MB before, ${Math.round(megabytes)} MB during`,
    })
    expect(failed).toEqual([])
    expect(outcome.unsuccessful).toEqual([])
    expect([api.hasEnded(), worker.hasEnded()]).toEqual([false, false])
    expect(during).toBeLessThan(Math.max(ratioMax * before, millisecondsMin))
    expect(megabytes - megabytesBefore).toBeLessThan(megabytesMax)
  })

  test('ten thousand queued runs delay the start of a run of another account little', async (test) => {
    const fleet = await newFleet(test, kind)
    const [attacker, neighbour] = [await fleet.createAccount(), await fleet.createAccount()]
    const [{ executionUrl }] = [await fleet.api(), await fleet.worker()]
    /** Queues runs one after another; returns the median time from the acceptance of a run to its start. */
    const startMilliseconds = async (count: number) => {
      const ids: string[] = []
      for (let index = 0; index < count; index += 1) {
        const queued = await queueRun(executionUrl, neighbour.key, 'greet', { name: 'Ada' })
        ids.push(queued?.id ?? '')
        await fleet.withStore((store) => waitForOutcome(store, ids.slice(-1)))
      }
      const started = await fleet.withStore(({ read }) =>
        read.query.selectFrom('runs').select(['created_at', 'started_at']).where('id', 'in', ids).execute(),
      )
      return median(started.map(({ created_at, started_at }) => (started_at ?? 0) - created_at))
    }
    const before = await startMilliseconds(10)
    const ledger = newLedger()
    const stop = startCallers(ledger, { urls: () => [executionUrl], key: attacker.key, count: 32 })
    for (let count = 1000; count <= queuedRuns; count += 1000) await untilAcknowledged(ledger, count)
    await stop()
    const during = await startMilliseconds(30)
    const { unfinished } = await fleet.withStore((store) => readOutcome(store, ledger.acknowledged))
    record({
      promise: 'P20',
      store: kind.name,
      fault: `${queuedRuns} runs queued at once`,
      figures: { acknowledged: ledger.acknowledged.length },
      remark: `${unfinished} runs unfinished at the end; neighbour's median start after ${before} ms before, ${during} ms during`,
    })
    expect(during).toBeLessThan(Math.max(ratioMax * before, startMillisecondsMin))
  })
})
