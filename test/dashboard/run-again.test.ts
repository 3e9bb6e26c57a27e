/** Variables as JSON, running a run again with its secrets, and both in a browser. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { violations } from '../support/accessibility.ts'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { failInStep, insertSteps } from '../support/finished-steps.ts'
import { control, fieldError, inputValue, pageText } from '../support/html.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { readRuns, readSecrets, type Sender, type StoredRun, sendJson, signInSender } from './queue-form-helpers.ts'

let service: TestService
let browser: Browser

beforeAll(async () => {
  ;[service, browser] = await Promise.all([startTestService(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await service.stop()
})

const secret = 'hunter2hunter2'

describe('variables as JSON', () => {
  test('are edited in one field, prefilled with a draft', async () => {
    const sender = await signInSender(service)
    const formPage = await sender.visitor.get('/workflows/count-words?as=json')
    expect(JSON.parse(inputValue(formPage, 'variables') ?? '')).toEqual({ path: 'README.md', top: 5 })
    const response = await sendJson(sender, 'count-words', '{"path": "README.md"}')
    expect(response.headers.location).toBe(`/runs/${(await readRuns(sender))[0]?.id}`)
    expect((await readRuns(sender))[0]?.variables).toEqual({ path: 'README.md', top: 5 })
  })

  test.each([
    ['', /^Enter a JSON object/],
    ['{"name": "Ada"', /^This is not JSON/],
    ['[]', /^Enter a JSON object/],
    ['{"name": "Ada", "name": "Eve"}', /^This must not have two members of the same name/],
    ['{"name": "Ada", "__proto__": {}}', /^\/__proto__ is not allowed/],
    ['{"style": "rude", "times": 9}', /\/name is required\..*\/times must be <= 3\./],
  ])('are refused with an error and kept in the field: %s', async (variables, error) => {
    const sender = await signInSender(service)
    const response = await sendJson(sender, 'greet', variables)
    expect(response.status).toBe(400)
    expect(fieldError(response, 'variables')).toMatch(error)
    expect(inputValue(response, 'variables')?.replaceAll(/\s/g, '')).toBe(variables.replaceAll(/\s/g, ''))
    expect(await readRuns(sender)).toEqual([])
  })

  test('are shown again without secrets, which must be entered again', async () => {
    const sender = await signInSender(service)
    const response = await sendJson(sender, 'greet', JSON.stringify({ token: secret, times: 9 }))
    expect(response.text).not.toContain(secret)
    const resent = inputValue(response, 'variables') ?? ''
    expect(JSON.parse(resent)).toEqual({ token: '<enter again>', times: 9 })
    const corrected = resent.replace('"times": 9', '"name": "Ada"')
    expect(fieldError(await sendJson(sender, 'greet', corrected), 'variables')).toContain('in place of a secret')
    expect(await readRuns(sender)).toEqual([])
  })
})

describe('running again', () => {
  async function queued(sender: Sender, workflowId: string, variables: object): Promise<StoredRun> {
    const response = await sendJson(sender, workflowId, JSON.stringify(variables))
    expect(response.status).toBe(303)
    return (await readRuns(sender)).at(-1) as StoredRun
  }

  test("prefills the run's variables and reuses its secret, which no page shows", async () => {
    const sender = await signInSender(service)
    const first = await queued(sender, 'greet', { name: 'Ada', tags: ['a', 'b'], token: secret })
    const path = `/workflows/greet?from=${first.id}`
    const formPage = await sender.visitor.get(path)
    expect(inputValue(formPage, 'variable-name')).toBe('Ada')
    expect(inputValue(formPage, 'variable-tags')).toBe('a\nb')
    expect(inputValue(formPage, 'variable-token')).toBe('')
    expect(pageText(formPage)).toContain('Leave empty to use the value of the earlier run.')
    const form = {
      key: inputValue(formPage, 'key') ?? '',
      from: inputValue(formPage, 'from') ?? '',
      'variable-name': 'Grace',
    }
    const response = await sender.visitor.post('/workflows/greet', form)
    const second = (await readRuns(sender)).at(-1) as StoredRun
    expect(response.headers.location).toBe(`/runs/${second.id}`)
    expect(second.variables).toEqual({ name: 'Grace', token: '********' })
    expect((await sender.visitor.get(`/runs/${second.id}`)).text).toContain(`href="/runs/${first.id}"`)
    expect(await readSecrets(sender, second)).toEqual({ '/token': secret })
    for (const { text } of [formPage, response, await sender.visitor.get(`/runs/${second.id}`)]) {
      expect(text).not.toContain(secret)
    }
    const changed = { ...form, key: crypto.randomUUID(), 'variable-token': 'another secret' }
    await sender.visitor.post('/workflows/greet', changed)
    expect(await readSecrets(sender, (await readRuns(sender)).at(-1) as StoredRun)).toEqual({
      '/token': 'another secret',
    })
  })

  test('reuses nested secrets by their masks', async () => {
    const sender = await signInSender(service)
    const first = await queued(sender, 'betray', {
      token: secret,
      nested: { token: 'also secret', more: 1 },
      fails: false,
    })
    const formPage = await sender.visitor.get(`/workflows/betray?from=${first.id}`)
    const nested = inputValue(formPage, 'variable-nested') ?? ''
    expect(JSON.parse(nested)).toEqual({ token: '********', more: 1 })
    const form = { key: inputValue(formPage, 'key') ?? '', from: first.id, 'variable-nested': nested.replace('1', '2') }
    expect((await sender.visitor.post('/workflows/betray', form)).status).toBe(303)
    const second = (await readRuns(sender)).at(-1) as StoredRun
    expect(second.variables).toMatchObject({ nested: { more: 2 }, fails: false })
    expect(await readSecrets(sender, second)).toEqual({ '/token': secret, '/nested/token': 'also secret' })
  })

  test('does not reuse the old secret when a new one was submitted', async () => {
    const sender = await signInSender(service)
    const first = await queued(sender, 'greet', { name: 'Ada', token: secret })
    const invalid = {
      key: crypto.randomUUID(),
      from: first.id,
      'variable-name': 'Ada',
      'variable-times': '9',
      'variable-token': 'a new secret',
    }
    const response = await sender.visitor.post('/workflows/greet', invalid)
    expect(response.status).toBe(400)
    expect(response.text).not.toContain('a new secret')
    expect(fieldError(response, 'variable-token')).toMatch(/^Enter secrets again/)
    expect(control(response, 'variable-token')).toMatchObject({ type: 'password', required: true })
    const json = JSON.stringify({ token: 'a new secret', times: 9 })
    const resent = await sendJson(sender, 'greet', json, { from: first.id })
    expect(inputValue(resent, 'variables')).toContain('"token": "<enter again>"')
  })

  test('uses JSON for variables without a field', async () => {
    const sender = await signInSender(service)
    const first = await queued(sender, 'greet', { name: 'two\r\nlines' })
    const formPage = await sender.visitor.get(`/workflows/greet?from=${first.id}`)
    expect(formPage.text).toContain('action="/workflows/greet?as=json"')
    expect(pageText(formPage)).toContain('Shown as JSON because the form has no fields for some of the variables.')
    expect(inputValue(formPage, 'variables')).toContain('"name": "two\\r\\nlines"')
  })

  test("refuses another workflow's run, and a mask where the run had no secret", async () => {
    const sender = await signInSender(service)
    const first = await queued(sender, 'greet', { name: 'Ada' })
    expect((await sender.visitor.get(`/workflows/betray?from=${first.id}`)).status).toBe(404)
    expect((await sender.visitor.get('/workflows/greet?from=none')).status).toBe(404)
    const form = { key: crypto.randomUUID(), from: first.id, 'variable-name': 'Ada', 'variable-token': '********' }
    const response = await sender.visitor.post('/workflows/greet', form)
    expect(response.status).toBe(400)
    expect(fieldError(response, 'variable-token')).toMatch(/^Is a secret that must be entered again/)
  })
})

describe('running again from the failed step', () => {
  const variables = { name: 'Ada', token: secret }

  /** A run of the sender that failed in the step `send` after two others, and the form that runs it again. */
  async function failed(sender: Sender, steps = ['fetch', 'parse <b>']) {
    const queued = await sendJson(sender, 'greet', JSON.stringify(variables), { delaySeconds: '3600' })
    const id = String(queued.headers.location).split('/').at(-1) ?? ''
    await insertSteps(service, id, steps)
    await failInStep(service, id, 'send')
    return { id, formPage: await sender.visitor.get(`/workflows/greet?from=${id}`) }
  }
  const submit = (sender: Sender, from: string, others: object) =>
    sender.visitor.post('/workflows/greet', {
      ...{ key: crypto.randomUUID(), from, 'variable-name': 'Ada', delaySeconds: '3600' },
      ...others,
    })
  const stepsOf = (id: string | undefined) =>
    service.rows('SELECT name FROM run_steps WHERE run_id = ? ORDER BY position', id ?? '')

  test('is offered, and reuses the results of the steps before it', async () => {
    const sender = await signInSender(service)
    const { id, formPage } = await failed(sender)
    expect(pageText(formPage)).toContain('From the failed step send')
    expect(pageText(formPage)).toContain('The 2 steps before it will not be executed again')
    expect(control(formPage, 'fromStep', '')).toMatchObject({ type: 'radio', checked: true })
    const form = { fromStep: 'send' }
    expect((await submit(sender, id, form)).status).toBe(303)
    const again = (await readRuns(sender)).at(-1)
    expect(again).toMatchObject({ rerun_of: id, variables: { name: 'Ada', token: '********' } })
    expect(await stepsOf(again?.id)).toEqual([{ name: 'fetch' }, { name: 'parse <b>' }])
    await submit(sender, id, { fromStep: '' })
    expect(await stepsOf((await readRuns(sender)).at(-1)?.id)).toEqual([])
  })

  test('is not offered for a run that failed in its first step or kept no results', async () => {
    const sender = await signInSender(service)
    expect((await failed(sender, [])).formPage.text).not.toContain('fromStep')
    const { id } = await failed(sender)
    await service.change('DELETE FROM run_steps WHERE run_id = ?', id)
    expect((await sender.visitor.get(`/workflows/greet?from=${id}`)).text).not.toContain('fromStep')
    const response = await submit(sender, id, { fromStep: 'send' })
    expect(response.status).toBe(400)
    expect(pageText(response)).toContain('This step needs results of the run that are no longer stored.')
    expect(await readRuns(sender)).toHaveLength(2)
  })

  test('keeps the choice with other errors, and refuses an unknown step and a secret that results contain', async () => {
    const sender = await signInSender(service)
    const { id } = await failed(sender, ['fetch', secret])
    const invalid = await submit(sender, id, { fromStep: 'send', 'variable-times': '9' })
    expect(invalid.status).toBe(400)
    expect(control(invalid, 'fromStep', 'send')).toMatchObject({ checked: true })
    const unknown = await submit(sender, id, { fromStep: 'no-such' })
    expect(pageText(unknown)).toContain('This step is not a step that the run has started')
    expect(unknown.text).not.toContain(secret)
    const replaced = await submit(sender, id, { fromStep: 'send', 'variable-token': 'another secret' })
    expect(pageText(replaced)).toContain('This step needs results that contain a secret of the run')
    expect(replaced.text).toContain('aria-describedby="fromStep-error"')
    expect(await readRuns(sender)).toHaveLength(1)
  })

  test('is accessible, and chosen in a browser', async (context) => {
    const sender = await signInSender(service)
    const { id } = await failed(sender)
    const page = await openPage(context, sender)
    await page.goto(`/workflows/greet?from=${id}`)
    expect(await violations(page)).toEqual([])
    await page.getByRole('group', { name: 'Start' }).getByLabel('From the failed step send').check()
    await page.getByText('Scheduling').click()
    await page.getByLabel('Start delay').fill('3600')
    await page.getByRole('button', { name: 'Queue run' }).click()
    await page.getByText('Repeats', { exact: true }).waitFor()
    expect(await stepsOf((await readRuns(sender)).at(-1)?.id)).toHaveLength(2)
    expect(await browserErrors(page)).toEqual([])
  })
})

/** A page that is signed in. */
async function openPage(context: TestContext, { visitor }: Sender) {
  const page = await browser.newPage(context, { baseUrl: service.dashboardUrl })
  const cookies = [...visitor.cookies].map(([name, value]) => ({ name, value, url: service.dashboardUrl }))
  await page.context().addCookies(cookies)
  return page
}

test('in a browser, the form queues a run, its page updates live, and the run runs again', async (context) => {
  const sender = await signInSender(service)
  const page = await openPage(context, sender)
  const file = join(service.dataDirectory, crypto.randomUUID())
  await page.goto('/workflows')
  await page.getByRole('link', { name: 'Hold until a file exists', exact: true }).click()
  await page.getByRole('button', { name: 'Queue run' }).click()
  expect(await page.locator(':invalid[name="variable-file"]').count()).toBe(1)
  await page.getByLabel('file').fill(file)
  await page.getByRole('button', { name: 'Queue run' }).click()
  await page.getByText('Holding').waitFor()
  await page.getByText('Follow all events with curl').click()
  writeFileSync(file, '')
  await page.getByText('Released', { exact: true }).waitFor()
  await page.locator('#run-status .badge', { hasText: 'Succeeded' }).waitFor()
  // Live updates keep what the user has opened.
  expect(await page.getByText('curl -N').isVisible()).toBe(true)
  await page.getByRole('link', { name: 'Run again' }).click()
  expect(await page.getByLabel('file').inputValue()).toBe(file)
  await page.getByRole('button', { name: 'Queue run' }).click()
  await page.locator('#run-status .badge', { hasText: 'Succeeded' }).waitFor()
  await until('two runs are stored', async () => (await readRuns(sender)).length === 2)
  expect(await browserErrors(page)).toEqual([])
})
