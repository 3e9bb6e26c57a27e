/** Links at which people without an account answer waits. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { approve } from '../operations/example-runs.ts'
import { queueRun, send } from '../operations/requests.ts'
import { Visitor } from '../support/dashboard.ts'
import { control, fieldError, pageText } from '../support/html.ts'
import { startTestService, type TestAccount, type TestService, until } from '../support/service.ts'

let service: TestService
let account: TestAccount

beforeAll(async () => {
  service = await startTestService()
  account = await service.createAccount()
})

afterAll(() => service.stop())

/** The path of a new link. */
async function createLink(runId: string, name = 'approval', expiresInSeconds = 3600): Promise<string> {
  const request = { path: { runId, name }, body: { expiresInSeconds } }
  const { body } = await send(service, 'createWaitLink', account.key, request).expect(201)
  return new URL(body.url).pathname
}

async function readWait(runId: string, name = 'approval') {
  const { body } = await send(service, 'listRunWaits', account.key, { path: { runId } })
  return body.data.find((wait: { name: string }) => wait.name === name)
}

const visit = () => new Visitor(service.dashboardUrl)

test('a person answers at a link, and the run goes on with the answer', async () => {
  const runId = await queueRun(service, account, { ...approve, query: '', body: { variableData: { amount: 42 } } })
  await until('the run waits', async () => (await readWait(runId))?.status === 'open')
  const [path, visitor] = [await createLink(runId), visit()]
  for (const method of ['GET', 'HEAD', 'GET']) expect((await visitor.send(method, path)).status).toBe(200)
  const page = await visitor.get(path)
  for (const text of ['Refund 42 €?', 'Refunds above 100 € need a reason.', 'amount 42'])
    expect(pageText(page)).toContain(text)
  expect((await readWait(runId)).status).toBe('open')

  const thanks = await visitor.post(path, { 'variable-approved': 'on', 'variable-reason': 'Broken' })
  expect([thanks.status, pageText(thanks)]).toEqual([200, expect.stringContaining('Your answer is stored.')])
  const ended = await until('the run has ended', async () => {
    const { body } = await send(service, 'getRun', account.key, { path: { runId } })
    return body.finishedAt !== null && body
  })
  const value = { approved: true, reason: 'Broken' }
  expect(ended).toMatchObject({ status: 'succeeded', output: { ok: true, value }, attempts: 1 })
  const { completedBy } = await readWait(runId)
  expect(completedBy).toEqual({
    apiKeyId: null,
    userId: null,
    linkId: expect.any(String),
    address: '127.0.0.1',
  })
})

test('a link takes one answer, and a second click does no harm', async () => {
  const runId = await queueRun(service, account, approve)
  const [path, other, visitor] = [await createLink(runId), await createLink(runId), visit()]
  const answer = { 'variable-approved': '' }
  expect((await visitor.post(path, answer)).status).toBe(200)
  expect((await visitor.post(path, answer)).status).toBe(200)
  const changed = await visitor.post(path, { 'variable-approved': 'on' })
  for (const used of [changed, await visitor.get(path)])
    expect([used.status, pageText(used)]).toEqual([410, expect.stringContaining('This link was used')])
  for (const late of [await visitor.get(other), await visitor.post(other, answer)])
    expect([late.status, pageText(late)]).toEqual([410, expect.stringContaining('Another answer was stored before')])
  expect((await readWait(runId)).value).toEqual({ approved: false })
})

test('errors stand at their fields, what was entered is kept, and nothing is stored', async () => {
  const runId = await queueRun(service, account, approve)
  const [path, visitor] = [await createLink(runId), visit()]
  const page = await visitor.post(path, { 'variable-approved': 'on', 'variable-reason': 'x'.repeat(81) })
  expect(page.status).toBe(400)
  expect(fieldError(page, 'variable-reason')).toBe('Must NOT have more than 80 characters.')
  expect(control(page, 'variable-approved')?.hasAttribute('checked')).toBe(true)
  expect(await readWait(runId)).toBeUndefined()
})

test('an answer that is no object has one field', async () => {
  const runId = await queueRun(service, account, approve)
  const [discount, reviewers, visitor] = [
    await createLink(runId, 'discount'),
    await createLink(runId, 'reviewers'),
    visit(),
  ]
  for (const [entered, error] of [
    ['', 'Is required.'],
    ['1.5', 'Enter a whole number.'],
    ['101', 'Must be <= 100.'],
  ] as const) {
    const page = await visitor.post(discount, { 'variable-Percent': entered })
    expect([page.status, fieldError(page, 'variable-Percent')]).toEqual([400, error])
  }
  expect((await visitor.post(discount, { 'variable-Percent': '15' })).status).toBe(200)
  expect((await readWait(runId, 'discount')).value).toBe(15)
  const few = await visitor.post(reviewers, { 'variable-Answer': 'Ada' })
  expect(fieldError(few, 'variable-Answer')).toBe('Must NOT have fewer than 2 items.')
  expect((await visitor.post(reviewers, { 'variable-Answer': 'Ada\r\nBo' })).status).toBe(200)
  expect((await readWait(runId, 'reviewers')).value).toEqual(['Ada', 'Bo'])
})

test('an unknown link, an expired one and one of an ended run are refused with the reason', async () => {
  const visitor = visit()
  expect((await visitor.get('/answer/unknown')).status).toBe(404)
  expect((await visitor.post('/answer/unknown', { 'variable-approved': 'on' })).status).toBe(404)
  const [expired, ended] = [await queueRun(service, account, approve), await queueRun(service, account, approve)]
  const paths = { expired: await createLink(expired), ended: await createLink(ended) }
  await service.change('UPDATE wait_links SET expires_at = ? WHERE run_id = ?', Date.now() - 1, expired)
  await send(service, 'cancelRun', account.key, { path: { runId: ended } }).expect(200)
  for (const [path, reason] of [
    [paths.expired, 'This link has expired.'],
    [paths.ended, 'the run that asked has ended'],
  ] as const) {
    for (const page of [await visitor.get(path), await visitor.post(path, { 'variable-approved': 'on' })])
      expect([page.status, pageText(page)]).toEqual([410, expect.stringContaining(reason)])
  }
  expect(await readWait(expired)).toBeUndefined()
})

test('a link ends with the API key that created it, and with the right of its creator to answer', async () => {
  const runId = await queueRun(service, account, { ...approve, query: '', body: { variableData: { amount: 42 } } })
  const create = async () => {
    const key = await account.createKey({ scopes: ['waits:write', 'runs:read'] })
    const request = { path: { runId, name: 'approval' }, body: { expiresInSeconds: 3600 } }
    const { body } = await send(service, 'createWaitLink', key.value, request).expect(201)
    return { key, path: new URL(body.url).pathname }
  }
  const [deleted, demoted] = [await create(), await create()]
  const visitor = visit()
  for (const { path } of [deleted, demoted]) expect((await visitor.get(path)).status).toBe(200)
  await account.deleteKey(deleted.key.id)
  await service.change('UPDATE api_keys SET role = ? WHERE id = ?', 'viewer', demoted.key.id)
  for (const { path } of [deleted, demoted])
    for (const page of [await visitor.get(path), await visitor.post(path, { 'variable-approved': 'on' })])
      expect([page.status, pageText(page)]).toEqual([410, expect.stringContaining('This link has expired.')])
  expect((await readWait(runId))?.completedAt ?? null).toBeNull()
})

test('failed posts at one link keep nobody at the same address from another link', async () => {
  const runId = await queueRun(service, account, approve)
  const [failing, other, visitor] = [await createLink(runId, 'discount'), await createLink(runId), visit()]
  const statuses = new Set<number>()
  for (let count = 0; count < 31; count += 1)
    statuses.add((await visitor.post(failing, { 'variable-Percent': '101' })).status)
  expect([...statuses]).toEqual([400, 429])
  expect((await visitor.post(other, { 'variable-approved': 'on' })).status).toBe(200)
})

test('behind a proxy, the address is the one that the proxy reports', async () => {
  const proxied = await startTestService({ worker: false, settings: { PROXY_HOPS: '1' } })
  try {
    const owner = await proxied.createAccount()
    const ids = await Promise.all([1, 2].map(() => queueRun(proxied, owner, approve)))
    const [byKey, byLink] = ids as [string, string]
    const post = (url: string, init: RequestInit, address: string) =>
      fetch(url, { ...init, headers: { ...init.headers, 'X-Forwarded-For': `198.51.100.1, ${address}` } })
    const headers = { Authorization: `Bearer ${owner.key}`, 'Content-Type': 'application/json' }
    const answer = { method: 'PUT', headers, body: JSON.stringify({ value: { approved: true } }) }
    const path = `/v1/execution/runs/${byKey}/waits/approval`
    expect((await post(`${proxied.executionUrl}${path}`, answer, '203.0.113.7')).status).toBe(200)
    const request = { path: { runId: byLink, name: 'approval' }, body: {} }
    const { body } = await send(proxied, 'createWaitLink', owner.key, request).expect(201)
    const form = {
      method: 'POST',
      headers: { Origin: proxied.dashboardUrl },
      body: new URLSearchParams({ 'variable-approved': 'on' }),
    }
    const answered = await post(`${proxied.dashboardUrl}${new URL(body.url).pathname}`, form, '2001:db8::7')
    expect(answered.status).toBe(200)
    const addresses = ids.map(async (runId) => {
      const waits = await send(proxied, 'listRunWaits', owner.key, { path: { runId } })
      return waits.body.data.map((wait: { completedBy: { address: string } }) => wait.completedBy.address)
    })
    expect(await Promise.all(addresses)).toEqual([['203.0.113.7'], ['2001:db8::7']])
  } finally {
    await proxied.stop()
  }
})

test('the audit log names the link that answered, and the address', async () => {
  const runId = await queueRun(service, account, approve)
  expect((await visit().post(await createLink(runId), { 'variable-approved': 'on' })).status).toBe(200)
  const { completedBy } = await readWait(runId)
  const entries = await service.rows<{ action: string; actor_id: string; details: string }>(
    'SELECT action, actor_id, details FROM audit_log WHERE subject_id = ? ORDER BY id',
    runId,
  )
  expect(entries.map(({ action }) => action)).toEqual(['wait.linkCreated', 'wait.answered'])
  expect(entries[1]?.actor_id).toBe(completedBy.linkId)
  expect(JSON.parse(entries[1]?.details ?? '')).toEqual({ wait: 'approval', address: '127.0.0.1' })
})
