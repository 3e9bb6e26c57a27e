/** The tab "Waiting", the page of a wait, and what the page of a run says about its waits. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send } from '../operations/requests.ts'
import { Visitor } from '../support/dashboard.ts'
import { fieldError, pageText } from '../support/html.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { newUser, page, queue, waitForPage } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

test('a user finds the question of a run, answers it, and the run goes on', async () => {
  const ada = await newUser(service)
  expect(await page(ada, '/waits')).toContain('No run waits for an answer')
  const id = await queue(ada, 'approve', { amount: 42 }, '?tag=customer:42')
  const waiting = await waitForPage(ada, id, 'Waiting for an answer')
  expect(waiting).toContain('Refund 42 €?')
  expect(waiting).toMatch(/Waits .*Refund 42 €\? Answer Waiting \d+m?s /)
  for (const query of ['', '?workflowId=approve', '?tag=customer:42', '?name=approval', '?kind=answer&status=open']) {
    expect(await page(ada, `/waits${query}`)).toMatch(/Refund 42 €\? .*run …\w{8} Waiting \d+m?s /)
  }
  for (const query of ['?workflowId=greet', '?tag=other', '?status=completed', '?name=discount', '?kind=sleep']) {
    expect(await page(ada, `/waits${query}`)).not.toContain('Refund 42 €?')
  }
  const path = `/runs/${id}/waits/approval`
  const question = await page(ada, path)
  for (const text of ['Refund 42 €?', 'Refunds above 100 € need a reason.', 'amount 42'])
    expect(question).toContain(text)

  const refused = await ada.visitor.post(path, { 'variable-approved': 'on', 'variable-reason': 'x'.repeat(81) })
  expect(refused.status).toBe(400)
  expect(fieldError(refused, 'variable-reason')).toContain('80')
  const answered = await ada.visitor.post(path, { 'variable-approved': 'on', 'variable-reason': 'Broken' })
  expect([answered.status, answered.headers.location]).toEqual([303, `${path}?done=answered`])
  expect(await page(ada, `${path}?done=answered`)).toMatch(
    /Your answer is stored.*Answered by Ada in the dashboard from 127\.0\.0\.1 Answer .*Broken/,
  )
  expect(await waitForPage(ada, id, 'Succeeded')).toMatch(/Attempts 1 /)
  const other = await ada.visitor.post(path, { 'variable-approved': '' })
  expect([other.status, pageText(other)]).toEqual([409, expect.stringContaining('Another answer was stored before')])
  expect(await page(ada, '/settings/audit-log')).toContain('answered a run that waits')
})

test('an answer shows who gave it and from where: a user, a key, or the link of a key', async () => {
  const ada = await newUser(service)
  const [byKey, byLink] = [await queue(ada, 'approve', {}), await queue(ada, 'approve', {})]
  for (const id of [byKey, byLink]) await waitForPage(ada, id, 'Waiting for an answer')
  const path = { runId: byKey, name: 'approval' }
  await send(service, 'completeWait', ada.key, { path, body: { value: { approved: true } } }).expect(200)
  const link = await send(service, 'createWaitLink', ada.key, { path: { ...path, runId: byLink }, body: {} }).expect(
    201,
  )
  const visitor = new Visitor(service.dashboardUrl)
  expect((await visitor.post(new URL(link.body.url).pathname, { 'variable-approved': 'on' })).status).toBe(200)
  const texts = [
    [byKey, 'key test through the API from 127.0.0.1'],
    [byLink, 'a person with a link that key test created from 127.0.0.1'],
  ] as const
  const inbox = await page(ada, '/waits?status=completed')
  for (const [id, text] of texts) {
    expect(inbox).toContain(text)
    expect(inbox).toContain('{"approved":true}')
    expect(await page(ada, `/runs/${id}/waits/approval`)).toContain(`Answered by ${text}`)
    expect(await page(ada, `/runs/${id}`)).toMatch(new RegExp(`Waits .*{"approved":true} by ${text}`))
  }
})

test('a user may answer before the run asks', async () => {
  const ada = await newUser(service)
  const id = await queue(ada, 'approve', {}, '?delaySeconds=1000')
  const path = `/runs/${id}/waits/approval`
  expect(await page(ada, path)).toContain('The run has not asked yet.')
  expect((await ada.visitor.post(path, { 'variable-approved': '' })).status).toBe(303)
  expect(await page(ada, path)).toContain('{"approved":false}')
})

test('a wait of another account is not found', async () => {
  const [ada, eve] = [await newUser(service), await newUser(service)]
  const id = await queue(ada, 'approve', {}, '?delaySeconds=1000')
  expect((await eve.visitor.get(`/runs/${id}/waits/approval`)).status).toBe(404)
  expect((await eve.visitor.post(`/runs/${id}/waits/approval`, { 'variable-approved': 'on' })).status).toBe(404)
  expect((await ada.visitor.get(`/runs/${id}/waits/other`)).status).toBe(404)
})

test('the page of a run shows the tree of calls that it is in, and lists the runs that it has called', async () => {
  const ada = await newUser(service)
  const ids = await Promise.all(Array.from({ length: 4 }, () => queue(ada, 'approve', {}, '?delaySeconds=1000')))
  const [root, parent, child, other] = ids.sort() as [string, string, string, string]
  expect(await page(ada, `/runs/${parent}`)).not.toContain('Calls')
  const call = (caller: string, called: string) =>
    service.change('UPDATE runs SET parent_run_id = ? WHERE id = ?', caller, called)
  await call(root, parent)
  await call(parent, child)
  await call(root, other)
  const shown = await ada.visitor.get(`/runs/${parent}`)
  const hrefs = [...shown.text.matchAll(/<ul class="calls">.*<\/ul>/gs)].join('').matchAll(/href="\/runs\/([^"]+)"/g)
  expect([...hrefs].map(([, id]) => id)).toEqual([root, child])
  const list = await page(ada, `/runs?parent=${root}`)
  expect(list).toContain(`Runs that run …${root.slice(-8)} has called.`)
  for (const id of [parent, other]) expect(list).toContain(id.slice(-8))
  expect(list).not.toContain(child.slice(-8))
  for (const text of ['nonsense', '../..']) expect(await page(ada, `/runs?parent=${text}`)).toContain(child.slice(-8))
})
