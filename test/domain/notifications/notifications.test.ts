/** Notifications: what rules collect, the messages that it becomes, and their delivery by SMTP and HTTP. */
import { createServer } from 'node:http'
import { type AddressInfo, BlockList } from 'node:net'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test, vi } from 'vitest'
import { messageTargets } from '../../../src/domain/notifications/message-targets.ts'
import {
  linksTo,
  notificationEventTypes,
  toMail,
  toMessage,
} from '../../../src/domain/notifications/notification-message.ts'
import { type NewRule, rulesMax } from '../../../src/domain/notifications/notification-rules.ts'
import { recordNotification } from '../../../src/domain/notifications/notifications.sql.ts'
import { groupMilliseconds, Notifier } from '../../../src/domain/notifications/notifier.ts'
import { followedRunsMax } from '../../../src/domain/notifications/run-followers.ts'
import { MailSender } from '../../../src/domain/notifications/send-mail.ts'
import { deleteRun } from '../../../src/domain/run-api/run-erasure.ts'
import { WebhookSender } from '../../../src/domain/webhooks/send-webhook.ts'
import { WebhookDispatcher } from '../../../src/domain/webhooks/webhook-dispatcher.ts'
import { Maintenance } from '../../../src/maintenance/maintenance.ts'
import { claimAll, failedAttempt, noRetry } from '../../support/claims.ts'
import {
  newAccount,
  newUser,
  openDomain,
  openStore,
  queueRun,
  retention,
  type Test,
  workflow,
} from '../../support/domain.ts'
import { startMailServer } from '../../support/mail-server.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const by = { kind: 'user', id: null, name: 'Ada' } as const
const minute = 60_000

interface Request {
  path: string
  headers: Record<string, string>
  body: string
}

/** An HTTP receiver on 127.0.0.1 that responds with `status`. */
async function startReceiver(test: Test) {
  const requests: Request[] = []
  const receiver = { status: 200 }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    requests.push({ path: request.url ?? '', headers: request.headers as Record<string, string>, body })
    response.writeHead(receiver.status).end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => void server.close())
  return { requests, receiver, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function open(test: Test, kind: StoreKind) {
  let now = Date.now()
  const clock = () => now
  const approve = workflow({ id: 'approve', waits: { approval: { schema: {}, title: 'Pay it?', description: null } } })
  const workflows = [workflow(), workflow({ id: 'other' }), approve]
  const domain = await openDomain(test, { kind, workflows, now: clock })
  const registry = { current: () => domain.workflows }
  domain.dashboard.url = 'https://dashboard.example'
  const account = await newAccount(domain)
  const mailServer = await startMailServer(test)
  const http = await startReceiver(test)
  const allowed = new BlockList()
  allowed.addAddress('127.0.0.1')
  const { store, encryption } = domain
  const newDispatcher = (ofStore = store, mailMilliseconds?: number, mailsMax = 500, domains?: string[]) => {
    const sender = new WebhookSender(allowed)
    const { url } = mailServer
    const mailSender = new MailSender({
      url,
      from: 'runs@service.example',
      domains,
      totalMilliseconds: mailMilliseconds,
    })
    const others = [messageTargets({ ...domain, workflows: registry, store: ofStore, sender, mailSender, mailsMax })]
    const log = pino({ level: 'silent' })
    const created = new WebhookDispatcher({ store: ofStore, encryption, sender, others, log, now: clock })
    test.onTestFinished(() => created.stop())
    return created
  }
  const dispatcher = newDispatcher()
  const deliver = async (of = dispatcher) => {
    await of.once()
    await of.idle()
  }
  const create = async (
    members: Partial<NewRule> = {},
    accountId = account.accountId,
    creator: Parameters<typeof domain.notificationRules.create>[2] = by,
  ) => {
    const rule = {
      name: 'Failures',
      events: ['run.failed'],
      channel: 'email',
      recipients: ['on@call.example'],
    } as const
    const created = await domain.notificationRules.create(accountId, { ...rule, ...members }, creator)
    if (!created || created === 'repeated') throw new Error('The rule was not created.')
    return { id: created.rule.id, secret: created.secret }
  }
  const messages = async (ruleId: string) =>
    (await domain.notificationRules.messages(account.accountId, ruleId)).map(({ request_body }) =>
      JSON.parse(request_body ?? ''),
    )
  /** Ends runs of the workflow, and returns their ids. */
  const end = async (count = 1, workflowId = 'anything', outcome: 'failed' | 'succeeded' = 'failed') => {
    for (let index = 0; index < count; index++) await queueRun(domain, account.principal, { workflowId })
    const claims = await claimAll(domain.queue, domain)
    const result = outcome === 'failed' ? failedAttempt : ({ kind: 'succeeded', output: 1 } as const)
    for (const claim of claims) await domain.queue.complete(claim, result, noRetry)
    return claims.map(({ runId }) => runId)
  }
  /** As another process that takes over maintenance. */
  const notify = async () => {
    const due = await domain.maintenance.readDue()
    return new Notifier({ ...domain, now: clock }).once(due)
  }
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  const parts = { domain, ...account, mailServer, http, create, messages, end, notify, pass, clock }
  return { ...parts, dispatcher, newDispatcher, deliver }
}

describe.each(stores)('notifications ($name)', (kind) => {
  test('a failure is sent at once, and those of the next ten minutes in one message that counts and names them', async (test) => {
    const { create, end, notify, messages, pass } = await open(test, kind)
    const { id } = await create()
    const [first] = await end()
    expect(await notify()).toBe(true)
    const later = [...(await end(12)), ...(await end(1, 'other'))]
    await notify()
    // Both were made at the same time.
    const [ofFirst, ofOther] = (await messages(id)).toSorted((a, b) => (a.data.workflowId < b.data.workflowId ? -1 : 1))
    expect(ofFirst.data).toMatchObject({ title: 'A run of anything failed', count: 1, workflowId: 'anything' })
    expect(ofFirst.data.url).toBe(`https://dashboard.example/runs/${first}`)
    expect(ofOther.data).toMatchObject({ count: 1, workflowId: 'other', events: [{ runId: later.at(-1) }] })
    pass(groupMilliseconds - 1)
    expect(await notify()).toBe(false)
    pass(1)
    await notify()
    const all = await messages(id)
    expect(all).toHaveLength(3)
    expect(all[0].data).toMatchObject({ title: '12 runs of anything failed', count: 12 })
    expect(all[0].data.url).toBe('https://dashboard.example/runs?workflow=anything')
    expect(all[0].data.events).toHaveLength(10)
    expect(later).toEqual(expect.arrayContaining(all[0].data.events.map(({ runId }: { runId: string }) => runId)))
    expect(await notify()).toBe(false)
  })

  test('rules get only events of their account, types and workflows, after the last retry, while they are enabled', async (test) => {
    const { domain, accountId, principal, create, end, notify, messages } = await open(test, kind)
    const foreign = await newAccount(domain)
    const ids = {
      all: (await create({ events: notificationEventTypes })).id,
      timedOut: (await create({ events: ['run.timedOut'] })).id,
      other: (await create({ workflowIds: ['other'] })).id,
      disabled: (await create({ enabled: false })).id,
      foreign: (await create({}, foreign.accountId)).id,
    }
    const retried = await queueRun(domain, principal)
    for (const claim of await claimAll(domain.queue, domain))
      await domain.queue.complete(claim, failedAttempt, { ...noRetry, maxAttempts: 2 })
    await end(1, 'other', 'succeeded')
    await notify()
    expect(await domain.store.read.all('SELECT id FROM notification_events', [])).toEqual([])
    const [failed] = await end()
    await notify()
    expect((await messages(ids.all)).map(({ data }) => data.events)).toEqual([
      [expect.objectContaining({ runId: failed })],
    ])
    for (const id of [ids.timedOut, ids.other, ids.disabled, ids.foreign]) expect(await messages(id)).toEqual([])
    expect(await domain.runs.get(accountId, retried.id)).toMatchObject({ status: 'queued' })
  })

  test('an email names the runs, is delivered once, and is repeated with the same Message-ID until it is accepted', async (test) => {
    const { domain, accountId, mailServer, create, end, notify, deliver, pass } = await open(test, kind)
    const { id } = await create({ name: 'Nights & <days>', recipients: ['on@call.example', 'no@call.example'] })
    const [runId] = await end()
    mailServer.refusing.all = true
    await notify()
    await deliver()
    const failed = (await domain.notificationRules.get(accountId, id))?.lastMessage
    const error = 'The SMTP server refused the email: 451 Try again later'
    expect(failed).toMatchObject({ status: 'pending', attempts: 1, error })
    mailServer.refusing.all = false
    mailServer.refusing.addresses = ['no@call.example']
    pass(10_000)
    await deliver()
    await deliver()
    const [mail] = mailServer.mails
    expect(mailServer.mails).toHaveLength(1)
    expect(mail).toMatchObject({ from: 'runs@service.example', to: ['on@call.example'] })
    expect(mail?.headers).toMatchObject({
      subject: '[Nights & <days>] A run of anything failed',
      'message-id': `<${failed?.id}@service.example>`,
      'auto-submitted': 'auto-generated',
    })
    expect(mail?.text).toContain(`A run of anything failed: ${runId}`)
    expect(mail?.text).toContain(`https://dashboard.example/runs/${runId}`)
    expect(mail?.text).toContain('Nights &amp; &lt;days&gt;')
    expect((await domain.notificationRules.get(accountId, id))?.lastMessage).toMatchObject({
      status: 'delivered',
      response_body: expect.stringContaining('Refused: no@call.example.'),
    })
  })

  test('an email is repeated if the server stalls before its end, and not after it', async (test) => {
    const { domain, accountId, mailServer, create, end, notify, deliver, newDispatcher, pass } = await open(test, kind)
    const { id } = await create()
    await end()
    await notify()
    const impatient = newDispatcher(domain.store, 100)
    const last = async () => (await domain.notificationRules.get(accountId, id))?.lastMessage
    mailServer.silent.at = 'recipients'
    await deliver(impatient)
    expect(await last()).toMatchObject({
      status: 'pending',
      attempts: 1,
      error: 'The SMTP server has not read the email in time.',
    })
    mailServer.silent.at = 'end'
    pass(10_000)
    await deliver()
    const error = 'The SMTP server has not confirmed the email, which it may have accepted. It is not sent again.'
    expect(await last()).toMatchObject({ status: 'failed', attempts: 2, error })
    mailServer.silent.at = undefined
    pass(groupMilliseconds)
    await deliver()
    expect(mailServer.mails).toHaveLength(1)
  })

  test('emails go to the domains that the operator permits only', async (test) => {
    const { domain, accountId, mailServer, create, end, notify, deliver, newDispatcher } = await open(test, kind)
    const { id } = await create({ recipients: ['on@CALL.example', 'off@call.example.net'] })
    await create({ recipients: ['on@CALL.example'] })
    await end(1)
    await notify()
    await deliver(newDispatcher(domain.store, undefined, 500, ['call.example']))
    expect(mailServer.mails.map(({ to }) => to)).toEqual([['on@call.example']])
    const sent = await domain.notificationRules.messages(accountId, id)
    expect(sent.map(({ status, error }) => ({ status, error }))).toEqual([
      { status: 'failed', error: 'The operator permits no emails to off@call.example.net.' },
    ])
  })

  test('emails beyond the limit of the account wait, and say why; those that were refused do not count', async (test) => {
    const { domain, accountId, mailServer, create, end, notify, deliver, newDispatcher, pass } = await open(test, kind)
    const recipients = ['on@call.example', 'off@call.example']
    const { id } = await create({ recipients })
    await end(1)
    await end(1, 'other')
    await notify()
    const limited = newDispatcher(domain.store, undefined, 3)
    mailServer.refusing.all = true
    await deliver(limited)
    mailServer.refusing.all = false
    pass(10_000)
    await deliver(limited)
    expect(mailServer.mails).toHaveLength(1)
    const sent = await domain.notificationRules.messages(accountId, id)
    expect(sent.map(({ status, error }) => ({ status, error }))).toEqual(
      expect.arrayContaining([
        { status: 'delivered', error: null },
        { status: 'pending', error: 'This account has sent emails to 3 addresses within an hour.' },
      ]),
    )
    pass(minute)
    await deliver()
    expect(mailServer.mails).toHaveLength(2)
  })

  test('Slack gets a text in which nothing mentions people, and a webhook gets a signed event', async (test) => {
    const { domain, accountId, http, create, end, notify, deliver } = await open(test, kind)
    const [slackUrl, hookUrl] = [`${http.url}/services/T0/canary-path`, `${http.url}/hook?token=canary-query`]
    const slack = await create({ name: '<!channel> & co @here', channel: 'slack', url: slackUrl, recipients: [] })
    const hook = await create({ channel: 'webhook', url: hookUrl, recipients: [] })
    const [runId] = await end()
    await notify()
    await deliver()
    const of = (path: string) => http.requests.filter((request) => request.path.startsWith(path))
    expect(JSON.parse(of('/services')[0]?.body ?? '')).toEqual({ text: expect.stringContaining('A run of anything') })
    expect(of('/services')[0]?.body).toContain('&lt;!channel&gt; &amp; co @\u200bhere')
    const { body = '', headers = {} } = of('/hook')[0] ?? {}
    const event = new Webhook(hook.secret ?? '').verify(body, headers)
    expect(event).toMatchObject({ type: 'notification', data: { ruleId: hook.id, events: [{ runId }] } })
    expect(slack.secret).toBeNull()
    const rows = await domain.store.read.all('SELECT * FROM notification_rules', [])
    const sent = await domain.store.read.all('SELECT * FROM webhook_deliveries', [])
    const log = await domain.store.read.all('SELECT * FROM audit_log WHERE account_id = ?', [accountId])
    const bytes = rows.map((row) => Buffer.from((row as { target: Uint8Array }).target).toString('latin1'))
    for (const each of [JSON.stringify([sent, log]), ...bytes]) {
      expect(each).not.toContain('canary')
      expect(each).not.toContain(hook.secret)
    }
    expect(http.requests).toHaveLength(2)
  })

  test('what happened is read when a message is sent, and a reader answers by its link, unless the rule says otherwise', async (test) => {
    const { domain, accountId, principal, http, mailServer, create, end, notify, deliver, messages, clock } =
      await open(test, kind)
    const events = ['run.failed', 'run.waiting'] as const
    const full = await create({ events, answerLinks: true }, accountId, principal)
    const hook = { channel: 'webhook', recipients: [], events } as const
    await create({ ...hook, url: `${http.url}/with`, answerLinks: true }, accountId, principal)
    await create({ ...hook, url: `${http.url}/without`, details: false })
    const [runId = ''] = await end()
    const queued = await queueRun(domain, principal, { workflowId: 'approve', tags: ['pay'] })
    const deadline = clock() + 60 * minute
    const wait = `INSERT INTO run_waits (run_id, name, id, account_id, workflow_id, kind, status, reached_at, deadline)
      VALUES (?, 'approval', ?, ?, 'approve', 'answer', 'open', ?, ?)`
    await domain.store.write((tx) => tx.all(wait, [queued.id, queued.id, accountId, clock(), deadline]))
    await notify()
    expect(JSON.stringify(await messages(full.id))).not.toContain('did not respond')
    await deliver()
    const sent = (path: string) =>
      http.requests
        .filter((request) => request.path === path)
        .flatMap(({ body }) => JSON.parse(body).data.events)
        .toSorted((a) => (a.event === 'run.failed' ? -1 : 1))
    const [failed, waiting] = sent('/with')
    const error = { name: 'Error', message: 'The server did not respond.' }
    expect(failed).toMatchObject({
      runId,
      wait: null,
      run: { title: 'Anything', error, step: null, attempts: 1, tags: [] },
    })
    const answerUrl = expect.stringMatching(/^https:\/\/dashboard\.example\/answer\/[\w-]{43}$/)
    const details = { title: 'Pay it?', deadline: new Date(deadline).toISOString(), answerUrl }
    expect(waiting).toMatchObject({ runId: queued.id, run: null, wait: details })
    expect(sent('/without').map(({ run, wait }) => [run, wait])).toEqual([
      [null, null],
      [null, null],
    ])
    const texts = mailServer.mails.map(({ text }) => text).join('')
    expect(texts).toContain('Error: The server did not respond.')
    expect(texts).toContain('Pay it?')
    const token = waiting.wait.answerUrl.split('/').at(-1)
    const link = await domain.waits.openLink(token)
    expect(link).toMatchObject({ state: 'open', wait: { runId: queued.id, name: 'approval' } })
    expect(await domain.apiKeys.delete(accountId, principal.apiKeyId, by)).toBe(true)
    expect((await domain.waits.openLink(token))?.state).toBe('expired')
    const stored = await domain.store.read.all('SELECT request_body FROM webhook_deliveries', [])
    expect(JSON.stringify(stored)).not.toContain(token)
  })

  test('an address in a private network that the operator does not allow is never contacted', async (test) => {
    const { domain, accountId, create, end, notify, deliver } = await open(test, kind)
    const { id } = await create({ channel: 'slack', url: 'https://10.0.0.1/services', recipients: [] })
    await end()
    await notify()
    await deliver()
    const message = (await domain.notificationRules.get(accountId, id))?.lastMessage
    expect(message).toMatchObject({
      status: 'pending',
      attempts: 1,
      error: '10.0.0.1 is not at a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows.',
    })
  })

  test('processes that make and send messages at once send each once, also after one was killed in between', async (test) => {
    const { domain, mailServer, create, end, notify, messages, newDispatcher, deliver, pass } = await open(test, kind)
    const { id } = await create()
    await end(3)
    const [store, others] = [await openStore(test, domain.location, kind), [notify(), notify(), notify()]]
    await Promise.all(others)
    expect((await messages(id)).map(({ data }) => data.count)).toEqual([3])
    // A process that was killed after its claim has leased the message for a minute.
    const lease = 'UPDATE webhook_deliveries SET attempts = 1, next_attempt_at = ? RETURNING 1'
    await domain.store.write((tx) => tx.all(lease, [Date.now() + 10 * minute]))
    await deliver()
    expect(mailServer.mails).toHaveLength(0)
    pass(11 * minute)
    await Promise.all([deliver(), deliver(newDispatcher(store))])
    expect(mailServer.mails).toHaveLength(1)
  })

  test('a wait for a person, a paused schedule, a disabled endpoint and a context without a sign-in are reported', async (test) => {
    const { domain, accountId, create, notify, messages, clock } = await open(test, kind)
    const { id } = await create({ events: notificationEventTypes, workflowIds: ['anything'] })
    const runId = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
    const at = clock()
    await queueRun(domain, { accountId, apiKeyId: 'key' })
    const wait = `INSERT INTO run_waits (run_id, name, id, account_id, workflow_id, kind, status, reached_at)
      SELECT id, 'approval', ?, account_id, workflow_id, 'answer', 'open', ? FROM runs WHERE account_id = ?`
    await domain.store.write((tx) => tx.all(wait, [runId, at, accountId]))
    const common = { accountId, subject: runId, at }
    await domain.store.write(async (tx) => {
      await recordNotification(tx, { ...common, event: 'browserContext.needsSignIn' })
      await recordNotification(tx, { ...common, event: 'webhookEndpoint.disabled' })
      await recordNotification(tx, { ...common, event: 'schedule.paused', workflowId: 'other' })
      await recordNotification(tx, { ...common, event: 'schedule.paused', workflowId: 'anything' })
    })
    await notify()
    const [ofWorkflow, ofNone] = (await messages(id)).toSorted((a) => (a.data.workflowId ? -1 : 1))
    expect(ofNone.data).toMatchObject({ count: 2, workflowId: null, title: '2 events' })
    expect(ofNone.data.events.map(({ url }: { url: string }) => url)).toEqual(
      expect.arrayContaining([
        `https://dashboard.example/browser-contexts/${runId}`,
        `https://dashboard.example/webhooks/${runId}`,
      ]),
    )
    expect(ofWorkflow.data.events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          event: 'run.waiting',
          subject: 'approval',
          url: expect.stringMatching(/waits\/approval$/),
        }),
        expect.objectContaining({ event: 'schedule.paused', url: `https://dashboard.example/schedules/${runId}` }),
      ]),
    )
    expect(ofWorkflow.data.count).toBe(2)
  })

  test('a run that does not start is reported once, when it has been queued for as long as the rule says', async (test) => {
    const { domain, principal, create, notify, messages, pass } = await open(test, kind)
    const { id } = await create({ events: ['run.notStarted'], notStartedSeconds: 600 })
    const before = await queueRun(domain, principal)
    await notify()
    pass(minute)
    await queueRun(domain, principal, { delaySeconds: 3600 })
    pass(11 * minute)
    await notify()
    pass(minute)
    await notify()
    const [message, ...others] = await messages(id)
    expect(message.data.events).toEqual([expect.objectContaining({ event: 'run.notStarted', runId: before.id })])
    expect(others).toEqual([])
  })

  test('a run that is queued again is reported for its time in the queue since then, as one whose delay has ended', async (test) => {
    const { domain, principal, create, notify, messages, pass } = await open(test, kind)
    const { id } = await create({ events: ['run.notStarted'], notStartedSeconds: 600 })
    const events = async () =>
      (await messages(id)).flatMap(({ data }) => data.events.map(({ runId }: { runId: string }) => runId))
    const lost = await queueRun(domain, principal)
    const [claim] = await claimAll(domain.queue, domain)
    await notify()
    pass(9 * minute)
    await notify()
    // Runs are created by the clock of the machine.
    const delayed = await queueRun(domain, principal, { delaySeconds: 660 })
    await domain.queue.complete(claim as NonNullable<typeof claim>, { kind: 'workerLost' }, noRetry)
    expect(await domain.runs.get(principal.accountId, lost.id)).toMatchObject({ status: 'queued' })
    // At the limit by its creation.
    pass(minute)
    await notify()
    expect(await events()).toEqual([])
    pass(9 * minute)
    await domain.maintenance.once()
    await notify()
    expect(await events()).toEqual([lost.id])
    pass(groupMilliseconds)
    await notify()
    await notify()
    expect((await events()).toSorted()).toEqual([lost.id, delayed.id].toSorted())
  })

  test('a failure of the notifier stops no other maintenance', async (test) => {
    const { domain } = await open(test, kind)
    const log = { warn: vi.fn() }
    const notifier = { once: () => Promise.reject(new Error('The rule cannot be read.')) }
    const maintenance = new Maintenance({ store: domain.store, retention, log, notifier })
    expect(await maintenance.once()).toBeGreaterThan(0)
    expect(log.warn).toHaveBeenCalledOnce()
  })

  test('a failure rate is reported when it exceeds the limit, and again only after it was below', async (test) => {
    const { domain, accountId, create, end, notify, messages, pass } = await open(test, kind)
    const { id } = await create({ events: ['workflow.failing'], failurePercent: 50 })
    await end(4)
    await notify()
    expect(await messages(id)).toEqual([])
    await end(2, 'anything', 'succeeded')
    await notify()
    await notify()
    const [message, ...others] = await messages(id)
    expect(others).toEqual([])
    expect(message.data.title).toBe('66 % of the last hour’s runs of anything have failed')
    await end(4, 'anything', 'succeeded')
    pass(minute)
    await notify()
    await end(4)
    pass(groupMilliseconds)
    await notify()
    expect((await messages(id)).map(({ data }) => data.events[0].subject)).toEqual(['57', '66'])
    expect((await domain.notificationRules.get(accountId, id))?.lastMessage?.status).toBe('pending')
  })

  test('a user who follows a run gets one email when it ends; without an address, none', async (test) => {
    const { domain, accountId, principal, userId, mailServer, end, notify, deliver, pass } = await open(test, kind)
    const [other, former] = [await newUser(domain, accountId), await newUser(domain, accountId)]
    const setEmail = 'UPDATE users SET email = ? WHERE id = ? RETURNING 1'
    await domain.store.write((tx) => tx.all(setEmail, ['ada@team.example', userId]))
    const [run, erased] = [await queueRun(domain, principal), await queueRun(domain, principal)]
    await domain.store.write((tx) => tx.all(setEmail, ['former@team.example', former]))
    for (const user of [userId, other, former])
      expect(await domain.runFollowers.follow(accountId, run, user)).toBe('followed')
    await domain.store.write((tx) => tx.all('UPDATE users SET role = NULL WHERE id = ? RETURNING 1', [former]))
    await domain.runFollowers.follow(accountId, run, userId)
    await domain.runFollowers.follow(accountId, erased, userId)
    await domain.runs.cancel(accountId, erased.id)
    await deleteRun(domain.store, accountId, erased.id, by)
    await notify()
    await end(0, 'anything', 'succeeded')
    await Promise.all([notify(), notify()])
    await deliver()
    pass(groupMilliseconds)
    await notify()
    await deliver()
    expect(mailServer.mails.map(({ to, headers }) => [to, headers.subject])).toEqual([
      [['ada@team.example'], 'The run of anything succeeded'],
    ])
    const sql = 'SELECT status, error FROM webhook_deliveries WHERE user_id = ?'
    expect(await domain.store.read.all(sql, [other])).toEqual([
      { status: 'failed', error: 'The user has no email address.' },
    ])
    expect(await domain.store.read.all(sql, [former])).toEqual([
      { status: 'failed', error: 'The user has no role any more.' },
    ])
    const ended = await domain.runs.get(accountId, run.id)
    expect(ended && (await domain.runFollowers.follow(accountId, ended, userId))).toBe('finished')
    expect(await domain.store.read.all('SELECT run_id FROM run_followers', [])).toEqual([])
  })

  test('a paused rule sends nothing more, and says so; changes at the same time keep each other', async (test) => {
    const { domain, accountId, mailServer, create, end, notify, deliver, pass } = await open(test, kind)
    const { id } = await create()
    mailServer.refusing.all = true
    await end()
    await notify()
    await deliver()
    await end()
    const other = await openDomain(test, { kind, location: domain.location })
    const [rules, same] = [domain.notificationRules, other.notificationRules]
    for (let count = 0; count < 5; count++) {
      await rules.update(accountId, id, { enabled: true }, by)
      await Promise.all([
        rules.update(accountId, id, { enabled: false }, by),
        same.update(accountId, id, { name: 'Nights', failurePercent: 90 }, by),
      ])
    }
    mailServer.refusing.all = false
    pass(groupMilliseconds)
    expect(await notify()).toBe(false)
    await deliver()
    expect(mailServer.mails).toEqual([])
    expect(await rules.get(accountId, id)).toMatchObject({
      ...{ enabled: false, name: 'Nights', failurePercent: 90 },
      lastMessage: { status: 'failed', attempts: 2, error: 'The rule is paused.' },
    })
    await rules.update(accountId, id, { enabled: true }, by)
    expect(await notify()).toBe(false)
  })

  test('a test is sent once in a minute, and a rule is erased with its events and messages', async (test) => {
    const { domain, accountId, create, end, notify, mailServer, deliver, pass } = await open(test, kind)
    const { id } = await create({ enabled: false })
    const send = () => domain.notificationRules.sendTest(accountId, id, by)
    const [first, repeated] = [await send(), await send()]
    expect(repeated?.id).toBe(first?.id)
    pass(minute)
    expect((await send())?.id).not.toBe(first?.id)
    await deliver()
    expect(mailServer.mails.map(({ headers }) => headers.subject)).toEqual(
      Array(2).fill('[Failures] This is a test message'),
    )
    await domain.notificationRules.update(accountId, id, { enabled: true }, by)
    await end()
    expect(await domain.notificationRules.delete(accountId, id, by)).toBe(true)
    expect(await domain.notificationRules.delete(accountId, id, by)).toBe(false)
    expect(await notify()).toBe(false)
    for (const table of ['notification_events', 'notification_groups', 'webhook_deliveries', 'notification_rules'])
      expect(await domain.store.read.all(`SELECT 1 FROM ${table}`, [])).toEqual([])
  })

  test('a rule is listed with its messages for its own account only, and the log has no address of a webhook', async (test) => {
    const { domain, accountId, http, create, notify, end } = await open(test, kind)
    const foreign = await newAccount(domain)
    const { id } = await create({ channel: 'webhook', recipients: [], url: `${http.url}/first-path` })
    const { notificationRules: rules, store } = domain
    expect((await rules.list(foreign.accountId, { limit: 10 }))?.rules).toEqual([])
    await rules.update(accountId, id, { url: `${http.url}/second-path` }, by)
    const entries = await domain.auditLog.list(accountId, { action: 'notificationRule.changed', limit: 10 })
    expect(entries.map(({ details }) => details.url)).toEqual([new URL(http.url).host])
    const told = vi.spyOn(store, 'notify')
    await rules.sendTest(accountId, id, by)
    expect(told).toHaveBeenCalledWith('runs')
    expect(await rules.messages(accountId, id)).toHaveLength(1)
    expect(await rules.messages(foreign.accountId, id)).toEqual([])
    await end()
    told.mockClear()
    expect(await notify()).toBe(true)
    expect(told).toHaveBeenCalledWith('runs')
  })

  test('what the service decides is recorded for enabled rules of the account and workflow', async (test) => {
    const { domain, accountId, create } = await open(test, kind)
    const foreign = await newAccount(domain)
    const events = ['schedule.paused'] as const
    const wanting = [await create({ events }), await create({ events, workflowIds: ['anything'] })]
    await create({ events, workflowIds: ['other'] })
    await create({ events, enabled: false })
    await create({ events }, foreign.accountId)
    const paused = { accountId, event: 'schedule.paused', workflowId: 'anything', subject: 'Nightly', at: 1 } as const
    await domain.store.write((tx) => recordNotification(tx, paused))
    const recorded = await domain.store.read.query.selectFrom('notification_events').select('rule_id').execute()
    expect(recorded.map(({ rule_id }) => rule_id).sort()).toEqual(wanting.map(({ id }) => id).sort())
  })

  test('an account has 20 rules at most, and a user follows 100 runs at most', async (test) => {
    const { domain, accountId, principal, userId, create } = await open(test, kind)
    for (let count = 0; count < rulesMax - 2; count++) await create()
    const results = await Promise.allSettled([create(), create(), create(), create()])
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
    await create({}, (await newAccount(domain)).accountId)
    const rows = Array.from({ length: followedRunsMax }, (_, index) => ({ run_id: `${index}`, user_id: userId }))
    const values = rows.map((row) => ({ ...row, account_id: accountId, created_at: 0 }))
    await domain.store.write((tx) => tx.query.insertInto('run_followers').values(values).execute())
    expect(await domain.runFollowers.follow(accountId, await queueRun(domain, principal), userId)).toBe('tooMany')
  })
})

test('line breaks in names begin no header, and markup is escaped', () => {
  const rule = { id: 'id', name: 'a\r\nBcc: victim@example.com\u2028<b>"x"</b>' }
  const row = { event: 'run.failed', workflow_id: 'w', run_id: 'r', subject: null, created_at: 0 }
  const source = { rule, workflowId: 'w', rows: [row], link: linksTo('https://d.example', null), at: 0 }
  const { subject, html } = toMail(toMessage(source))
  expect(subject).toBe('[a Bcc: victim@example.com <b>"x"</b>] A run of w failed')
  expect(html).toContain('&lt;b&gt;&quot;x&quot;&lt;/b&gt;')
  expect(html).not.toContain('<b>')
})
