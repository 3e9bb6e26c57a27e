/** P19: kills of every kind of process lose and invent no webhook event, and an endpoint delays no other account's. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { Store } from '../../../src/storage/store.ts'
import { type ApiMember, type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { type FleetStore, fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import type { TestAccount } from '../../support/service.ts'
import { type ReceivedWebhook, startWebhookReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts'
import { record } from '../figures.ts'

const kills = process.env.TEST_SET === 'reliability' ? 200 : 8
/** Longer than the lease of an attempt, which is a minute, and than the delay after several kills and failures. */
const drainLimits = { timeout: 600_000, interval: 100 }
/** A delivery fails at random only so often, since the delay between its attempts doubles. */
const failuresMax = 2
const seed = 19

interface Harness {
  fleet: Fleet
  random: () => number
  apis: ApiMember[]
  workers: Member[]
  /** Ids of acknowledged runs by account. */
  runs: Map<string, string[]>
}

/** Calls the first API. */
async function call({ apis }: Harness, { key }: TestAccount, method: string, path: string, body?: object) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  const response = await fetch(`${apis[0]?.executionUrl}/v1/execution/${path}`, init)
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as { id: string; secret: string }
}

const events = ['run.succeeded', 'run.failed', 'run.timedOut', 'run.cancelled', 'run.expired']

async function createEndpoint(
  harness: Harness,
  account: TestAccount,
  receiver: WebhookReceiver,
  {
    path,
    respond,
    only = events,
  }: { path: string; respond?: (id: string) => number | Promise<number>; only?: string[] },
) {
  const { id, secret } = await call(harness, account, 'POST', 'webhook-endpoints', {
    url: receiver.url(path),
    events: only,
  })
  receiver.accept(path, { secret, ...(respond && { respond }) })
  return id
}

/** Fails half of the first attempts of each event until the signal aborts, with a status or by closing the connection. */
function failHalf(signal: AbortSignal): (id: string) => number {
  const random = seededRandom(seed)
  const failures = new Map<string, number>()
  return (id) => {
    const count = failures.get(id) ?? 0
    if (signal.aborted || count === failuresMax || random() < 0.5) return 204
    failures.set(id, count + 1)
    return random() < 0.5 ? 500 : 0
  }
}

/** Queues runs of the accounts, and cancels some of them, until the signal aborts. */
async function load({ apis, runs, random }: Harness, accounts: readonly TestAccount[], signal: AbortSignal) {
  while (!signal.aborted) {
    const queue = async ({ key, id }: TestAccount) => {
      const url = apis[random() < 0.5 ? 0 : 1]?.executionUrl ?? ''
      const response = await queueRun(url, key, 'greet', { name: 'Ada' })
      if (response?.status !== 202 || !response.id) return
      runs.get(id)?.push(response.id)
      if (random() > 0.2) return
      const headers = { Authorization: `Bearer ${key}` }
      await fetch(`${url}/v1/execution/runs/${response.id}/cancel`, { method: 'POST', headers }).catch(() => {})
    }
    await Promise.all(accounts.map(queue))
    await delay(20)
  }
}

/** Kills a process, and replaces it. Most are APIs, which deliver. */
async function replaceOne({ fleet, apis, workers, random }: Harness): Promise<void> {
  const index = random() < 0.5 ? 0 : 1
  await delay(random() * 300)
  if (random() < 0.7) {
    await apis[index]?.kill()
    apis[index] = await fleet.api()
  } else {
    await workers[index]?.kill()
    workers[index] = await fleet.worker()
  }
}

/** Compares what an endpoint got with how the runs of its account ended in the store. */
async function examine(store: Store, requests: readonly ReceivedWebhook[], accountId: string, only = events) {
  const rows = await store.read.query
    .selectFrom('runs')
    .select(['id', 'status'])
    .where('account_id', '=', accountId)
    .execute()
  const expected = new Map(rows.map(({ id, status }) => [id, `run.${status}`]))
  const runOf = ({ event }: ReceivedWebhook) => (event.data as { runId: string }).runId
  const accepted = requests.filter(({ status }) => status === 204)
  const delivered = new Set(accepted.map(runOf))
  const missing = [...expected].filter(([id, type]) => only.includes(type) && !delivered.has(id))
  const invented = requests.filter((each) => expected.get(runOf(each)) !== each.event.type)
  const idsByRun = Map.groupBy(requests, runOf)
  const twoEvents = [...idsByRun.values()].filter((all) => new Set(all.map(({ id }) => id)).size > 1)
  return {
    events: [...expected.values()].filter((type) => only.includes(type)).length,
    repeated: accepted.length - delivered.size,
    requests: requests.length,
    violations: { missing: missing.length, invented: invented.length, twoEvents: twoEvents.length },
  }
}

async function waitUntilDelivered(store: Store, accountId: string): Promise<void> {
  const pending = store.read.query
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('account_id', '=', accountId)
    .where('status', '=', 'pending')
    .limit(1)
  await vi.waitUntil(async () => (await pending.execute()).length === 0, drainLimits)
}

async function open(test: Parameters<typeof newFleet>[0], kind: FleetStore) {
  const fleet = await newFleet(test, kind, { settings: { WEBHOOK_PRIVATE_ADDRESSES: '127.0.0.1' } })
  const [account, slow] = [await fleet.createAccount(), await fleet.createAccount()]
  const harness: Harness = {
    fleet,
    random: seededRandom(seed),
    apis: [await fleet.api(), await fleet.api()],
    workers: [await fleet.worker(), await fleet.worker()],
    runs: new Map([account, slow].map(({ id }) => [id, []])),
  }
  return { harness, account, slow, receiver: await startWebhookReceiver(test) }
}

describe.concurrent.each(fleetStores)('on the store "$name"', (kind) => {
  test('every run that ends is delivered, and nothing else', { timeout: 3_600_000 }, async (test) => {
    const { harness, account, slow, receiver } = await open(test, kind)
    const responding = Promise.withResolvers<number>()
    const stop = new AbortController()
    await createEndpoint(harness, account, receiver, { path: '/half', respond: failHalf(stop.signal) })
    await createEndpoint(harness, account, receiver, { path: '/cancelled', only: ['run.cancelled'] })
    const stalled = { path: '/stalled', respond: () => responding.promise }
    const stalledId = await createEndpoint(harness, slow, receiver, stalled)

    const loading = load(harness, [account, slow], stop.signal)
    for (let count = 0; count < kills; count += 1) await replaceOne(harness)
    stop.abort()
    await loading

    const ids = [...harness.runs.values()].flat()
    await harness.fleet.withStore(async (store) => {
      const { lost, duplicated } = await waitForOutcome(store, ids)
      await waitUntilDelivered(store, account.id)
      // Nothing of the other account was accepted yet: its endpoint delayed only itself.
      expect(receiver.received('/stalled')).toEqual([])
      responding.resolve(204)
      // Pending deliveries become due at once.
      for (const enabled of [false, true]) {
        await call(harness, slow, 'PATCH', `webhook-endpoints/${stalledId}`, { enabled })
      }
      await waitUntilDelivered(store, slow.id)

      const results = [
        await examine(store, receiver.received('/half'), account.id),
        await examine(store, receiver.received('/cancelled'), account.id, ['run.cancelled']),
        await examine(store, receiver.received('/stalled'), slow.id),
      ]
      const sum = (of: (result: (typeof results)[number]) => number) => results.reduce((all, each) => all + of(each), 0)
      record({
        promise: 'P19',
        store: kind.name,
        fault: `${kills} kills under load; endpoints that fail half the time, and that do not respond`,
        figures: {
          acknowledged: ids.length,
          killed: kills,
          lost: lost + sum(({ violations }) => violations.missing),
          duplicated: duplicated + sum(({ violations }) => violations.twoEvents),
        },
        remark: `${sum(({ events }) => events)} events in ${sum(({ requests }) => requests)} requests, ${sum(({ repeated }) => repeated)} accepted more than once; ${sum(({ violations }) => violations.invented)} invented`,
      })
      expect({ lost, duplicated, refused: receiver.refused }).toEqual({ lost: 0, duplicated: 0, refused: [] })
      for (const { violations } of results) expect(violations).toEqual({ missing: 0, invented: 0, twoEvents: 0 })
      for (const { events } of results) expect(events).toBeGreaterThan(0)
    })
  })
})
