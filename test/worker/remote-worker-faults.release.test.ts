/** Workers outside of the service that vanish, freeze or are cut off, as real processes. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Test } from '../support/domain.ts'
import { type Member, newFleet } from '../support/fleet.ts'
import { fleetStores } from '../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../support/ledger.ts'
import { until } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

const runs = 3
/** With leases of 3 s. */
const milliseconds = 2000

/** One worker executes runs, which leave marks in files. */
async function startRuns(test: Test, kind: (typeof fleetStores)[number]) {
  const fleet = await newFleet(test, kind)
  const { key } = await fleet.createAccount()
  const { executionUrl: url } = await fleet.api()
  const directory = join(fleet.storage.directory, 'marks')
  mkdirSync(directory)
  const worker = await fleet.remoteWorker({ url, key })
  const queue = () => queueRun(url, key, 'mark', { directory, milliseconds })
  const queued = await Promise.all(Array.from({ length: runs }, queue))
  const ids = queued.flatMap((response) => response?.id ?? [])
  const marks = (id: string) => {
    const file = join(directory, id)
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  }
  await until('the worker executes them', () => ids.every((id) => marks(id).length > 0))
  const outcome = () => fleet.withStore((store) => waitForOutcome(store, ids))
  /** The attempts that the runs returned. */
  const outputs = () =>
    fleet.withStore(async ({ read }) => {
      const rows = await read.query.selectFrom('runs').select('output').where('id', 'in', ids).orderBy('id').execute()
      return rows.map(({ output }) => Number(output))
    })
  return { worker, marks, outcome, outputs, queue, addWorker: () => fleet.remoteWorker({ url, key }) }
}

const ended = { lost: 0, duplicated: 0, unfinished: 0, succeeded: runs, unsuccessful: [] }

/** With its executors, as a computer that is suspended. */
function signalGroup({ pid }: Member, signal: NodeJS.Signals): void {
  process.kill(-pid, signal)
}

test.for(fleetStores)(
  'the runs of a worker that vanishes are executed by another, on the store "$name"',
  async (kind, test) => {
    const { worker, addWorker, outcome, outputs } = await startRuns(test, kind)
    await worker.kill()
    await addWorker()
    expect(await outcome()).toMatchObject(ended)
    for (const attempt of await outputs()) expect(attempt).toBeGreaterThan(1)
  },
)

test.for(fleetStores)(
  'a worker that is frozen past its leases changes nothing when it goes on, on the store "$name"',
  async (kind, test) => {
    const { worker, marks, addWorker, outcome, outputs, queue } = await startRuns(test, kind)
    signalGroup(worker, 'SIGSTOP')
    const other = await addWorker()
    const before = { outcome: await outcome(), outputs: await outputs() }
    expect(before.outcome).toMatchObject(ended)
    for (const attempt of before.outputs) expect(attempt).toBeGreaterThan(1)
    await other.kill()
    signalGroup(worker, 'SIGCONT')
    const last = (await queue())?.id as string
    await until('the worker executes further runs', () => marks(last).some((mark) => mark.startsWith('done')))
    expect({ outcome: await outcome(), outputs: await outputs() }).toEqual(before)
  },
)

/** Longer than the leases: an attempt that goes on without one would end while another worker executes its run. */
const longMilliseconds = 5000

test.for([
  [fleetStores[0], 'stall'],
  [fleetStores[1], 'cut'],
] satisfies [(typeof fleetStores)[number] | undefined, keyof TcpProxy][])(
  'a worker that cannot renew its leases stops its code when they end (case %$)',
  async ([kind, fault], test) => {
    if (!kind) throw new Error('There are two stores.')
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const { executionUrl: url } = await fleet.api()
    const proxy = await startTcpProxy(test, Number(new URL(url).port))
    const { directory } = fleet.storage
    const worker = await fleet.remoteWorker({ url: `http://127.0.0.1:${proxy.port}`, key })
    const queue = () => queueRun(url, key, 'mark', { directory, milliseconds: longMilliseconds })
    const id = (await queue())?.id as string
    const file = join(directory, id)
    const marks = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
    await until('the worker executes it', () => marks().includes('started 1'))
    proxy[fault]()
    const other = await fleet.remoteWorker({ url, key })
    // While packets are lost, the service may lease it to the waiting request of the first worker once more.
    await until('another worker has executed it', () => marks().some((mark) => mark.startsWith('done')))
    expect(marks()).not.toContain('done 1')
    expect(marks()).toHaveLength(3)
    expect(worker.logged('lease lost; attempt stopped')).toBe(1)
    await other.kill()
    proxy.restore()
    const next = (await queue())?.id as string
    await until('the first worker takes runs again', () => existsSync(join(directory, next)))
  },
)
