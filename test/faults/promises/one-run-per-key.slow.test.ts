/** P7: requests with the same Idempotency-Key queue one run, across processes and crashes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ApiMember, type Fleet, newFleet } from '../../support/fleet.ts'
import { type FleetStore, fleetStores } from '../../support/fleet-stores.ts'
import { type QueueResponse, queueRun } from '../../support/ledger.ts'
import { until } from '../../support/service.ts'
import { record } from '../figures.ts'

type Test = Parameters<typeof newFleet>[0]

const processes = 3
const preload = new URL('./die-before-response.ts', import.meta.url)

async function runsIn(fleet: Fleet): Promise<string[]> {
  const rows = await fleet.withStore(({ read }) => read.query.selectFrom('runs').select('id').execute())
  return rows.map(({ id }) => id)
}

const put = (api: ApiMember, key: string, idempotencyKey: string) =>
  queueRun(api.executionUrl, key, 'greet', { name: 'Ada' }, { 'Idempotency-Key': idempotencyKey })

const batchSize = 100

/** `undefined` without a response. */
async function postBatch(api: ApiMember, key: string) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'batch' }
  const body = JSON.stringify({ runs: Array(batchSize).fill({ workflowId: 'greet', variableData: { name: 'Ada' } }) })
  const init = { method: 'POST', headers, body }
  const response = await fetch(`${api.executionUrl}/v1/execution/queue-remote-batch`, init).catch(() => undefined)
  if (!response) return undefined
  const { data = [] } = (await response.json()) as { data?: { id: string }[] }
  const replayed = response.headers.get('Idempotent-Replayed')
  return { status: response.status, replayed, ids: data.map(({ id }) => id) }
}

/** A process that dies before its next 202 once `arm` was called, and another one. */
async function openMortal(test: Test, kind: FleetStore) {
  const fleet = await newFleet(test, kind)
  const { key } = await fleet.createAccount()
  const armed = join(fleet.storage.directory, 'armed')
  const settings = { NODE_OPTIONS: `--import=${preload.href}`, DIE_BEFORE_RESPONSE: armed }
  const killed = await fleet.api({ settings })
  const other = await fleet.api()
  return { fleet, key, killed, other, arm: () => writeFileSync(armed, '') }
}

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test.for([
    { calls: 100, keys: 1 },
    { calls: 1280, keys: 128 },
  ])(
    '$calls parallel requests with $keys keys to several processes queue $keys runs',
    async ({ calls, keys }, test) => {
      const fleet = await newFleet(test, kind)
      const { key } = await fleet.createAccount()
      const apis = await Promise.all(Array.from({ length: processes }, () => fleet.api()))
      const send = (index: number) => put(apis[index % processes] as ApiMember, key, `key-${index % keys}`)
      const responses = await Promise.all(Array.from({ length: calls }, (_, index) => send(index)))
      const ids = new Set(responses.map((response) => response?.id))
      const runs = await runsIn(fleet)
      record({
        promise: 'P7',
        store: kind.name,
        fault: `${calls} PUTs at once with ${keys} Idempotency-Keys, ${processes} processes`,
        figures: { acknowledged: responses.length, duplicated: runs.length - keys },
      })
      expect(responses.map((response) => response?.status)).toEqual(Array(calls).fill(202))
      expect([...ids].toSorted()).toEqual(runs.toSorted())
      expect(runs).toHaveLength(keys)
      expect(responses.filter((response) => !response?.replayed)).toHaveLength(keys)
    },
  )

  test('after a crash between commit and response, the repeated request gets the same run', async (test) => {
    const { fleet, key, killed, other, arm } = await openMortal(test, kind)
    expect(await put(killed, key, 'before')).toMatchObject({ status: 202, replayed: false })
    arm()
    expect(await put(killed, key, 'cut-off')).toBeUndefined()
    await until('the process has died', killed.hasEnded)
    const committed = await runsIn(fleet)
    const repeated = (await put(other, key, 'cut-off')) as QueueResponse
    const after = await runsIn(fleet)
    record({
      promise: 'P7',
      store: kind.name,
      fault: 'kill -9 between commit and response, then the same PUT to another process',
      figures: { acknowledged: 2, killed: 1, lost: committed.length - 2, duplicated: after.length - committed.length },
    })
    expect(committed).toHaveLength(2)
    expect(committed).toContain(repeated.id)
    expect(repeated).toMatchObject({ status: 202, replayed: true })
    expect(after.toSorted()).toEqual(committed.toSorted())
  })

  test('after a crash between commit and response, the repeated batch gets the same runs', async (test) => {
    const { fleet, key, killed, other, arm } = await openMortal(test, kind)
    arm()
    expect(await postBatch(killed, key)).toBeUndefined()
    await until('the process has died', killed.hasEnded)
    const committed = await runsIn(fleet)
    const repeated = await postBatch(other, key)
    const after = await runsIn(fleet)
    const lost = batchSize - committed.length
    record({
      promise: 'P7',
      store: kind.name,
      fault: `kill -9 between commit and response of a batch of ${batchSize}, then the same batch to another process`,
      figures: { acknowledged: batchSize, killed: 1, lost, duplicated: after.length - committed.length },
    })
    expect(repeated).toMatchObject({ status: 202, replayed: 'true' })
    expect(repeated?.ids.toSorted()).toEqual(committed.toSorted())
    expect(committed).toHaveLength(batchSize)
    expect(after.toSorted()).toEqual(committed.toSorted())
  })
})
