/** Measures how many webhooks a process delivers to a receiver in another process, and what a run's event costs its end. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { BlockList } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { WebhookSender } from '../src/domain/webhooks/send-webhook.ts'
import { WebhookDispatcher } from '../src/domain/webhooks/webhook-dispatcher.ts'
import { eventTypes, WebhookEndpoints } from '../src/domain/webhooks/webhook-endpoints.ts'
import { Cursors } from '../src/storage/cursors.ts'
import { claimAll, noRetry } from '../test/support/claims.ts'
import { type Domain, newAccount, queueRun, type Test } from '../test/support/domain.ts'
import { onEachStore } from './bench-domain.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'

const rounds = 5
const deliveries = 2000
const accounts = 20
const runs = 500
const by = { kind: 'operator', id: null, name: 'bench' } as const

export async function webhooks({ stores }: BenchOptions): Promise<void> {
  const rows = await onEachStore(stores, async (domain, test) => {
    const endpoints = new WebhookEndpoints(domain.store, domain.encryption, new Cursors(domain.encryption))
    const rates = await measureRates(domain, endpoints, await startReceiver(test))
    return [...rates, ...(await measureEnds(domain, endpoints))]
  })
  const columns = ['store', `${accounts} endpoints`, '1 endpoint', ...Object.keys(ends)]
  print(table([columns, ...rows]))
}

/** Returns its URL. */
async function startReceiver({ onTestFinished }: Test): Promise<string> {
  const child = fork(fileURLToPath(new URL('./webhook-receiver.ts', import.meta.url)))
  onTestFinished(() => void child.kill())
  const [port] = (await once(child, 'message')) as [number]
  return `http://127.0.0.1:${port}/`
}

/** Deliveries per second to many endpoints of an account each, and to one. */
async function measureRates(domain: Domain, endpoints: WebhookEndpoints, url: string): Promise<string[]> {
  const { store, encryption } = domain
  const ids: [accountId: string, endpointId: string][] = []
  for (let count = 0; count < accounts; count += 1) {
    const { accountId } = await newAccount(domain)
    const created = await endpoints.create(accountId, { url, events: eventTypes }, by)
    if (!created || created === 'repeated') throw new Error('The endpoint was not created.')
    ids.push([accountId, created.endpoint.id])
  }
  const allowed = new BlockList()
  allowed.addAddress('127.0.0.1')
  const sender = new WebhookSender(allowed)
  const dispatcher = new WebhookDispatcher({ store, encryption, sender, log: pino({ level: 'silent' }) })
  const rates: Record<string, number[]> = { many: [], one: [] }
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, to] of Object.entries({ many: ids, one: ids.slice(0, 1) })) {
      await insertDeliveries(domain, to)
      const startedAt = performance.now()
      if (round === 0 && name === 'many') dispatcher.start()
      store.notify('runs')
      await waitUntilDelivered(domain)
      // The first round warms up.
      if (round > 0) rates[name]?.push(deliveries / ((performance.now() - startedAt) / 1000))
    }
  }
  await dispatcher.stop()
  return Object.values(rates).map((each) => `${Math.round(median(each))}/s`)
}

async function insertDeliveries({ store }: Domain, to: readonly [string, string][]): Promise<void> {
  const now = Date.now()
  const run = JSON.stringify({ workflowId: 'anything', status: 'succeeded', tags: [], createdAt: now, finishedAt: now })
  const values = { event: 'run.succeeded', run_id: uuid(), run, status: 'pending', attempts: 0, created_at: now }
  const rest = { next_attempt_at: now, deadline: now + 3_600_000, last_attempt_at: null, latency_ms: null }
  const unsent = { request_url: null, request_body: null, response_status: null, response_body: null, error: null }
  await store.write(async ({ query }) => {
    for (let start = 0; start < deliveries; start += 500) {
      const rows = Array.from({ length: 500 }, (_, index) => {
        const [account_id = '', endpoint_id = ''] = to[index % to.length] ?? []
        return { id: uuid(), account_id, endpoint_id, ...values, ...rest, ...unsent }
      })
      await query.insertInto('webhook_deliveries').values(rows).execute()
    }
  })
}

async function waitUntilDelivered({ store }: Domain): Promise<void> {
  const pending = store.read.query
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('status', '=', 'pending')
    .limit(1)
  while ((await pending.execute()).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** The endpoints of the account whose runs end. No dispatcher runs. */
const ends = {
  'end of a run, no endpoint': [],
  'other events': [{ events: ['run.expired'] as const }],
  '1 match': [{ events: eventTypes }],
  '20 matches': Array.from({ length: 20 }, () => ({ events: eventTypes })),
}

/** The time to complete a run among 500, which share commits. */
async function measureEnds(domain: Domain, endpoints: WebhookEndpoints): Promise<string[]> {
  const subjects = []
  for (const given of Object.values(ends)) {
    const { principal } = await newAccount(domain)
    for (const { events } of given) {
      await endpoints.create(principal.accountId, { url: 'https://hooks.example/', events }, by)
    }
    subjects.push({ principal, microseconds: [] as number[] })
  }
  for (let round = 0; round <= rounds; round += 1) {
    for (const { principal, microseconds } of subjects) {
      await Promise.all(Array.from({ length: runs }, () => queueRun(domain, principal)))
      const claims = await claimAll(domain.queue, domain, runs)
      const startedAt = performance.now()
      await Promise.all(claims.map((claim) => domain.queue.complete(claim, { kind: 'succeeded', output: 1 }, noRetry)))
      if (round > 0) microseconds.push(((performance.now() - startedAt) * 1000) / claims.length)
    }
  }
  return subjects.map(({ microseconds }) => `${Math.round(median(microseconds))} µs`)
}
