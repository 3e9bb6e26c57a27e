/** Webhooks: an event for each end of a run in the transaction that ends it, and its delivery. */
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { deleteRun } from '../../../src/domain/run-api/run-erasure.ts'
import { RunRollups } from '../../../src/domain/statistics/run-rollups.ts'
import type { WebhookRequest, WebhookResult } from '../../../src/domain/webhooks/send-webhook.ts'
import {
  expiredDeliveries,
  redeliveredMax,
  WebhookDeliveries,
} from '../../../src/domain/webhooks/webhook-deliveries.ts'
import {
  WebhookDispatcher,
  type WebhookDispatcherDependencies,
} from '../../../src/domain/webhooks/webhook-dispatcher.ts'
import {
  endpointsMax,
  eventTypes,
  type NewEndpoint,
  WebhookEndpoints,
} from '../../../src/domain/webhooks/webhook-endpoints.ts'
import { webhookBacklog } from '../../../src/domain/webhooks/webhooks.sql.ts'
import { expiredRuns } from '../../../src/maintenance/retention.ts'
import { Cursors } from '../../../src/storage/cursors.ts'
import { claimAll, failedAttempt, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, openStore, queueRun, type Test, workflow } from '../../support/domain.ts'
import { beforeNextCommit, recordNotifications } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const by = { kind: 'user', id: null, name: 'Ada' } as const
const accepted: WebhookResult = { status: 204, body: '', error: null }
const refused: WebhookResult = { status: 500, body: 'no', error: 'The response had the status 500.' }

async function open(test: Test, kind: StoreKind) {
  let now = Date.now()
  const clock = () => now
  const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'other' })], now: clock })
  const { store, encryption } = domain
  const cursors = new Cursors(encryption)
  const [endpoints, deliveries] = [
    new WebhookEndpoints(store, encryption, cursors, clock),
    new WebhookDeliveries(store, cursors, clock),
  ]
  const account = await newAccount(domain)
  const create = async (members: Partial<NewEndpoint> = {}, accountId = account.accountId) => {
    const created = await endpoints.create(accountId, { url: 'https://a.example/', events: eventTypes, ...members }, by)
    if (!created || created === 'repeated') throw new Error('The endpoint was not created.')
    return { id: created.endpoint.id, secret: created.secret }
  }
  const list = async (endpointId: string, accountId = account.accountId) => {
    const page = await deliveries.list(accountId, endpointId, { limit: 100 })
    if (!page || page === 'wrongCursor') throw new Error('There is no such endpoint.')
    return page.deliveries
  }
  const sent: WebhookRequest[] = []
  const receiver = { respond: async (_: WebhookRequest): Promise<WebhookResult> => accepted }
  const send = async (request: WebhookRequest) => {
    sent.push(request)
    return receiver.respond(request)
  }
  /** Like another process on the same store. */
  const newDispatcher = (more: Partial<WebhookDispatcherDependencies> = {}, ofStore = store) => {
    const sender = { send, close: async () => {} }
    const log = pino({ level: 'silent' })
    const created = new WebhookDispatcher({ store: ofStore, encryption, sender, log, now: clock, ...more })
    test.onTestFinished(() => created.stop())
    return created
  }
  const dispatcher = newDispatcher()
  /** Starts what is due, and waits until it has been recorded. */
  const deliver = async () => {
    await dispatcher.once()
    await dispatcher.idle()
  }
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  const queries = { domain, ...account, endpoints, deliveries, create, list }
  return { ...queries, sent, receiver, dispatcher, newDispatcher, deliver, pass, clock }
}

const hour = 3_600_000

describe.each(stores)('webhooks ($name)', (kind) => {
  test('each way in which a run ends creates one delivery', async (test) => {
    const { domain, principal, accountId, create, list, pass } = await open(test, kind)
    const { id } = await create()
    const [succeeds, fails, timesOut] = [
      await queueRun(domain, principal),
      await queueRun(domain, principal),
      await queueRun(domain, principal),
    ]
    const claims = await claimAll(domain.queue, domain)
    const claimOf = (runId: string) => claims.find((claim) => claim.runId === runId) as (typeof claims)[number]
    await domain.queue.complete(claimOf(succeeds.id), { kind: 'succeeded', output: 1 }, noRetry)
    await domain.queue.complete(claimOf(fails.id), failedAttempt, noRetry)
    await domain.queue.complete(claimOf(timesOut.id), { kind: 'timedOut', seconds: 1 } as never, noRetry)
    const cancelled = await queueRun(domain, principal)
    await domain.runs.cancel(accountId, cancelled.id)
    const expired = await queueRun(domain, principal, { expiresInSeconds: 1 })
    pass(hour)
    await domain.maintenance.once()
    const found = (await list(id)).map(({ event, run_id }) => [event, run_id])
    expect(new Map(found as [string, string][])).toEqual(
      new Map([
        ['run.succeeded', succeeds.id],
        ['run.failed', fails.id],
        ['run.timedOut', timesOut.id],
        ['run.cancelled', cancelled.id],
        ['run.expired', expired.id],
      ]),
    )
    expect(found).toHaveLength(5)
  })

  test('a run whose worker is lost for the last time creates one delivery', async (test) => {
    const { domain, principal, create, list, pass } = await open(test, kind)
    const { id } = await create()
    const run = await queueRun(domain, principal)
    for (let losses = 0; losses < 10 && (await list(id)).length === 0; losses += 1) {
      await claimAll(domain.queue, domain)
      pass(hour)
      await domain.maintenance.once()
    }
    await domain.maintenance.once()
    expect((await list(id)).map(({ event, run_id }) => [event, run_id])).toEqual([['run.failed', run.id]])
  })

  test('endpoints get only events of their account, of the types, workflows and tags that they name', async (test) => {
    const { domain, principal, accountId, create, list } = await open(test, kind)
    const other = await newAccount(domain)
    const ids = {
      all: (await create()).id,
      failures: (await create({ events: ['run.failed'] })).id,
      workflow: (await create({ workflowIds: ['other', 'third'] })).id,
      tag: (await create({ tags: ['nightly', 'x'] })).id,
      disabled: (await create({ enabled: false })).id,
    }
    const foreign = (await create({}, other.accountId)).id
    const end = async (request: Parameters<typeof queueRun>[2]) => {
      const { id } = await queueRun(domain, principal, request)
      await domain.runs.cancel(accountId, id)
      return id
    }
    const [plain, ofOther, tagged] = [
      await end({}),
      await end({ workflowId: 'other' }),
      await end({ tags: ['a', 'nightly'] }),
    ]
    const runsOf = async (id: string, of = accountId) => (await list(id, of)).map(({ run_id }) => run_id)
    expect((await runsOf(ids.all)).sort()).toEqual([plain, ofOther, tagged].sort())
    expect(await runsOf(ids.failures)).toEqual([])
    expect(await runsOf(ids.workflow)).toEqual([ofOther])
    expect(await runsOf(ids.tag)).toEqual([tagged])
    expect(await runsOf(ids.disabled)).toEqual([])
    expect(await runsOf(foreign, other.accountId)).toEqual([])
  })

  test('the event of a run that is erased before it is sent has the same body, which is shown once it is sent', async (test) => {
    const { domain, principal, accountId, create, list, sent, deliver, pass } = await open(test, kind)
    const { id } = await create()
    const runs = await Promise.all([queueRun(domain, principal, { tags: ['a'] }), queueRun(domain, principal)])
    for (const run of runs) await domain.runs.cancel(accountId, run.id, { userId: by.name })
    await deleteRun(domain.store, accountId, runs[0].id, by)
    pass(200 * 24 * hour)
    const later = () => Date.now() + 200 * 24 * hour
    // Runs are purged once their usage is counted.
    await new RunRollups(domain.store, later).once()
    const purge = expiredRuns(90, later)
    await domain.store.write((tx) => purge.remove(tx))
    expect(await domain.store.read.all('SELECT id FROM runs', [])).toEqual([])
    await deliver()
    const bodies = sent.map(({ body }) => JSON.parse(body))
    const expected = (run: (typeof runs)[number], tags: string[]) => ({
      type: 'run.cancelled',
      timestamp: expect.any(String),
      data: {
        ...{ runId: run.id, workflowId: 'anything', status: 'cancelled', reason: 'cancelRequested', attempts: 0, tags },
        ...{ createdAt: expect.any(String), finishedAt: expect.any(String) },
      },
    })
    expect(bodies).toHaveLength(2)
    expect(bodies).toEqual(expect.arrayContaining([expected(runs[0], ['a']), expected(runs[1], [])]))
    expect((await list(id)).map(({ request_body }) => request_body).sort()).toEqual(sent.map(({ body }) => body).sort())
  })

  test('a delivery is signed with the secret, and with the previous one during the overlap', async (test) => {
    const { domain, principal, accountId, endpoints, create, list, sent, deliver, pass } = await open(test, kind)
    const { id, secret } = await create()
    const rotated = await endpoints.rotateSecret(accountId, id, by)
    const run = await queueRun(domain, principal, { tags: ['nightly'] })
    await domain.runs.cancel(accountId, run.id)
    await deliver()
    const [delivery] = await list(id)
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, response_status: 204, next_attempt_at: null })
    const { headers = {}, body = '' } = sent[0] ?? {}
    expect(headers['webhook-id']).toBe(delivery?.id)
    if (!rotated || rotated === 'repeated') throw new Error('The secret was not replaced.')
    for (const key of [secret, rotated.secret]) {
      const event = new Webhook(key).verify(body, headers) as Record<string, unknown>
      expect(event.type).toBe('run.cancelled')
      const data = { runId: run.id, workflowId: 'anything', status: 'cancelled', tags: ['nightly'], attempts: 0 }
      expect(event.data).toMatchObject(data)
    }
    pass(25 * hour)
    expect((await endpoints.get(accountId, id))?.previousSecretExpiresAt).toBeNull()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    expect(sent[1]?.headers['webhook-signature']).not.toContain(' ')
  })

  test('a form that is submitted twice creates one endpoint and replaces the secret once', async (test) => {
    const { accountId, endpoints, create } = await open(test, kind)
    const given = { url: 'https://a.example/', events: eventTypes }
    const id = crypto.randomUUID()
    const created = await Promise.all([1, 2].map(() => endpoints.create(accountId, given, by, id)))
    expect(created.filter((each) => each === 'repeated')).toHaveLength(1)
    const other = await create()
    const rotated = await Promise.all([1, 2].map(() => endpoints.rotateSecret(accountId, other.id, by, null)))
    expect(rotated.filter((each) => each === 'repeated')).toHaveLength(1)
  })

  test('a summary has the newest delivery, and the numbers of pending and failed ones', async (test) => {
    const { domain, principal, accountId, deliveries, create, receiver, deliver, pass } = await open(test, kind)
    const [{ id }, unused] = [await create(), await create({ events: ['run.failed'] })]
    receiver.respond = async () => refused
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    pass(73 * hour)
    await deliver()
    await deliveries.sendTest(accountId, id, by)
    pass(1)
    const newest = await deliveries.sendTest(accountId, id, by)
    const summaries = await deliveries.summaries(accountId)
    expect(summaries.get(id)).toMatchObject({ last: { id: newest?.id }, pending: 2, failed: 1 })
    expect(summaries.get(unused.id)).toEqual({ last: undefined, pending: 0, failed: 0 })
  })

  test('the backlog is since when the most overdue delivery is due, and how many endpoints were disabled', async (test) => {
    const { domain, accountId, principal, create, receiver, deliver, pass, clock } = await open(test, kind)
    const backlog = async () => (await domain.store.read.all(webhookBacklog, []))[0]
    expect(await backlog()).toEqual({ dueSince: null, disabledEndpoints: 0 })
    await create()
    await create({ enabled: false })
    receiver.respond = async () => ({ ...refused, status: 410 })
    const endedAt = clock()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    pass(hour)
    expect(await backlog()).toEqual({ dueSince: endedAt, disabledEndpoints: 0 })
    await deliver()
    expect(await backlog()).toEqual({ dueSince: null, disabledEndpoints: 1 })
  })

  test('failures are retried with growing delays; after three days the endpoint is disabled', async (test) => {
    const { domain, principal, accountId, endpoints, create, list, sent, receiver, deliver, pass, clock } = await open(
      test,
      kind,
    )
    receiver.respond = async () => refused
    const { id } = await create()
    const startedAt = clock()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    let [delivery] = await list(id)
    const delays: number[] = []
    while (delivery?.status === 'pending') {
      await deliver()
      delivery = (await list(id))[0]
      if (delivery?.next_attempt_at === null || delivery?.next_attempt_at === undefined) break
      delays.push(delivery.next_attempt_at - clock())
      pass(delivery.next_attempt_at - clock())
    }
    expect(delivery).toMatchObject({
      status: 'failed',
      response_status: 500,
      response_body: 'no',
      error: refused.error,
    })
    expect(clock() - startedAt).toBe(72 * hour)
    expect(delays[0]).toBeLessThanOrEqual(6000)
    expect(Math.max(...delays)).toBeLessThanOrEqual(14.4 * hour)
    expect(sent.length).toBeGreaterThan(10)
    expect((await endpoints.get(accountId, id))?.disabledReason).toBe('deliveriesFailed')
  })

  test('an endpoint that accepts other events stays enabled; 410 disables one at once', async (test) => {
    const { domain, principal, accountId, endpoints, create, list, receiver, deliver, pass } = await open(test, kind)
    const { id } = await create()
    const poison = await queueRun(domain, principal)
    receiver.respond = async ({ body }) => (body.includes(poison.id) ? refused : accepted)
    await domain.runs.cancel(accountId, poison.id)
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    pass(73 * hour)
    await deliver()
    expect((await list(id)).map(({ status }) => status).sort()).toEqual(['delivered', 'failed'])
    expect((await endpoints.get(accountId, id))?.disabledReason).toBeNull()
    receiver.respond = async () => ({ ...refused, status: 410 })
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    expect((await endpoints.get(accountId, id))?.disabledReason).toBe('gone')
  })

  test('an endpoint that is disabled during an attempt keeps the reason', async (test) => {
    const { domain, principal, accountId, endpoints, create, receiver, deliver } = await open(test, kind)
    const { id } = await create()
    receiver.respond = async () => {
      await endpoints.update(accountId, id, { enabled: false }, by)
      return { ...refused, status: 410 }
    }
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    expect((await endpoints.get(accountId, id))?.disabledReason).toBe('request')
  })

  test('a repetition of more deliveries than fit says where the next one begins', async (test) => {
    const { domain, principal, accountId, deliveries, create, deliver } = await open(test, kind)
    const { id } = await create()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    const createdAt = await domain.store.write(async ({ query }) => {
      const row = await query.selectFrom('webhook_deliveries').selectAll().executeTakeFirstOrThrow()
      const idOf = (index: number) => row.id.slice(0, -4) + index.toString(16).padStart(4, '0')
      await query.deleteFrom('webhook_deliveries').execute()
      for (let first = 0; first <= redeliveredMax; first += 91) {
        const rows = Array.from({ length: 91 }, (_, index) => ({ ...row, id: idOf(first + index) }))
        await query.insertInto('webhook_deliveries').values(rows).execute()
      }
      return row.created_at
    })
    const repeat = () => deliveries.redeliverSince(accountId, id, { since: createdAt }, by)
    expect(redeliveredMax + 1).toBe(11 * 91)
    expect(await repeat()).toEqual({ count: redeliveredMax, nextSince: createdAt })
    expect(await repeat()).toEqual({ count: 1, nextSince: null })
  })

  test('an endpoint that does not respond delays no other account, and gets 20 requests at a time', async (test) => {
    const { domain, principal, accountId, create, list, sent, receiver, dispatcher } = await open(test, kind)
    const other = await newAccount(domain)
    const slow = await create({ url: 'https://slow.example/' })
    const quick = await create({}, other.accountId)
    const waiting = Promise.withResolvers<WebhookResult>()
    receiver.respond = async ({ url }) => (url.includes('slow') ? waiting.promise : accepted)
    for (let count = 0; count < 30; count += 1) {
      await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    }
    await dispatcher.once()
    await dispatcher.once()
    expect(sent).toHaveLength(20)
    await domain.runs.cancel(other.accountId, (await queueRun(domain, other.principal)).id)
    await dispatcher.once()
    await expect.poll(async () => (await list(quick.id, other.accountId))[0]?.status).toBe('delivered')
    expect((await list(slow.id)).filter(({ attempts }) => attempts > 0)).toHaveLength(20)
    waiting.resolve(accepted)
  })

  test('two processes that claim deliveries at the same time send each event once', async (test) => {
    const { domain, principal, accountId, create, sent, dispatcher, newDispatcher } = await open(test, kind)
    await create()
    const second = newDispatcher()
    for (let count = 0; count < 10; count += 1) {
      await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    }
    await Promise.all([dispatcher.once(), second.once()])
    await Promise.all([dispatcher.idle(), second.idle()])
    expect(new Set(sent.map(({ headers }) => headers['webhook-id'])).size).toBe(10)
    expect(sent).toHaveLength(10)
  })

  test('a delivery that another process is about to claim is sent by it alone', async (test) => {
    const { domain, principal, accountId, create, list, sent, dispatcher, newDispatcher } = await open(test, kind)
    const { id } = await create()
    const second = newDispatcher({}, await openStore(test, domain.location, kind))
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    const claimed = beforeNextCommit(domain.store, () => second.once())
    await Promise.all([dispatcher.once(), claimed])
    await Promise.all([dispatcher.idle(), second.idle()])
    expect(sent).toHaveLength(1)
    expect((await list(id)).map(({ status, attempts }) => [status, attempts])).toEqual([['delivered', 1]])
  })

  test('a response that arrives after the lease of its attempt does not replace that of a later attempt', async (test) => {
    const opened = await open(test, kind)
    const { domain, principal, accountId, create, list, sent, receiver, dispatcher, newDispatcher, pass } = opened
    const { id } = await create()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    const late = Promise.withResolvers<WebhookResult>()
    receiver.respond = () => late.promise
    await dispatcher.once()
    expect(sent).toHaveLength(1)
    receiver.respond = async () => accepted
    pass(60_000)
    const second = newDispatcher()
    await second.once()
    await second.idle()
    const delivered = { status: 'delivered', attempts: 2, response_status: 204, next_attempt_at: null }
    expect(await list(id)).toMatchObject([delivered])
    late.resolve(refused)
    await dispatcher.idle()
    expect(await list(id)).toMatchObject([delivered])
  })

  test('a delivery that was aborted because its process stopped is due at once', async (test) => {
    const { domain, principal, accountId, create, list, sent, newDispatcher, deliver } = await open(test, kind)
    const { id } = await create()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    const send = (_: WebhookRequest, signal: AbortSignal) =>
      new Promise<WebhookResult>((resolve) => {
        signal.addEventListener('abort', () => resolve({ status: null, body: null, error: 'aborted' }))
      })
    const stopping = newDispatcher({ sender: { send, close: async () => {} }, stopMilliseconds: 1 })
    await stopping.once()
    await stopping.stop()
    expect(await list(id)).toMatchObject([{ status: 'pending', attempts: 1 }])
    await deliver()
    expect(sent).toHaveLength(1)
    expect(await list(id)).toMatchObject([{ status: 'delivered', attempts: 2 }])
  })

  test('no delivery of another account, nor of another endpoint, is found or sent again', async (test) => {
    const { domain, accountId, create, deliveries } = await open(test, kind)
    const other = await newAccount(domain)
    const add = async (ofAccount: string) => {
      const { id } = await create({ enabled: false }, ofAccount)
      const delivery = await deliveries.sendTest(ofAccount, id, by)
      return { account: ofAccount, endpoint: id, delivery: delivery?.id ?? '' }
    }
    const items = [await add(accountId), await add(accountId), await add(other.accountId)]
    for (const { account } of items)
      for (const { endpoint } of items)
        for (const { delivery } of items) {
          const isOwn = items.some(
            (each) => each.account === account && each.endpoint === endpoint && each.delivery === delivery,
          )
          expect((await deliveries.get(account, endpoint, delivery))?.id).toBe(isOwn ? delivery : undefined)
          expect((await deliveries.redeliver(account, endpoint, delivery, by))?.id).toBe(isOwn ? delivery : undefined)
        }
  })

  test('dispatchers learn of deliveries that were queued again, and of tests', async (test) => {
    const { domain, accountId, create, deliveries, list, deliver, clock } = await open(test, kind)
    const { id } = await create()
    const statusAt = async (act: () => Promise<unknown>) => {
      const notified = recordNotifications(domain.store, async () => (await list(id))[0]?.status)
      await act()
      const found = await notified()
      await deliver()
      return found.runs
    }
    expect(await statusAt(() => deliveries.sendTest(accountId, id, by))).toBe('pending')
    const [delivery] = await list(id)
    expect(await statusAt(() => deliveries.redeliver(accountId, id, delivery?.id ?? '', by))).toBe('pending')
    const request = { since: clock() }
    expect(await statusAt(() => deliveries.redeliverSince(accountId, id, request, by))).toBe('pending')
  })

  test('endpoints are listed, counted and redelivered for themselves and their account', async (test) => {
    const { domain, accountId, endpoints, deliveries, create, list, deliver, clock } = await open(test, kind)
    const other = await newAccount(domain)
    for (let count = 0; count < endpointsMax; count += 1) await create({}, other.accountId)
    const ids = [(await create()).id, (await create()).id]
    const page = await endpoints.list(accountId, { limit: 100 })
    expect(page?.endpoints.map(({ id }) => id).sort()).toEqual(ids.sort())
    const [first = '', second = ''] = ids
    for (const id of ids) await deliveries.sendTest(accountId, id, by)
    await deliver()
    expect(await deliveries.redeliverSince(accountId, first, { since: clock() }, by)).toMatchObject({ count: 1 })
    expect((await list(first)).map(({ status }) => status)).toEqual(['pending'])
    expect((await list(second)).map(({ status }) => status)).toEqual(['delivered'])
  })

  test('enabling makes the pending deliveries of that endpoint due, and of no other', async (test) => {
    const { accountId, endpoints, deliveries, create, list, deliver, receiver } = await open(test, kind)
    const [enabled, other] = [(await create()).id, (await create()).id]
    for (const id of [enabled, other]) await deliveries.sendTest(accountId, id, by)
    receiver.respond = async () => refused
    await deliver()
    await endpoints.update(accountId, enabled, { enabled: false }, by)
    await endpoints.update(accountId, enabled, { enabled: true }, by)
    receiver.respond = async () => accepted
    await deliver()
    expect(await list(enabled)).toMatchObject([{ status: 'delivered', attempts: 2 }])
    expect(await list(other)).toMatchObject([{ status: 'pending', attempts: 1 }])
  })

  test('enabling sends what was pending, and old deliveries are purged', async (test) => {
    const { domain, principal, accountId, endpoints, create, list, deliver, pass, clock } = await open(test, kind)
    const { id } = await create()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await endpoints.update(accountId, id, { enabled: false }, by)
    await deliver()
    expect((await list(id))[0]?.attempts).toBe(0)
    await endpoints.update(accountId, id, { enabled: true }, by)
    await deliver()
    expect((await list(id))[0]?.status).toBe('delivered')
    const purge = expiredDeliveries(10, clock)
    expect(await purge.next(domain.store.read)).toBeUndefined()
    pass(10 * 24 * hour + 1)
    await domain.store.write((tx) => purge.remove(tx))
    expect(await list(id)).toEqual([])
  })

  test('deliveries are kept for four days, also when runs are kept for one', async (test) => {
    const { domain, principal, accountId, create, list, deliver, pass, clock } = await open(test, kind)
    const { id } = await create()
    await domain.runs.cancel(accountId, (await queueRun(domain, principal)).id)
    await deliver()
    const purge = () => domain.store.write((tx) => expiredDeliveries(1, clock).remove(tx))
    pass(4 * 24 * hour - 60_000)
    await purge()
    expect(await list(id)).toHaveLength(1)
    pass(120_000)
    await purge()
    expect(await list(id)).toEqual([])
  })
})
