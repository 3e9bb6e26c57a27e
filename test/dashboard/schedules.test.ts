/** The tab "Schedules": create, edit, pause, resume, run now, delete. */
import { v7 as uuid } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { control, fieldError, find, inputValue, linkPaths, type Markup, pageText } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const response = await visitor.get(path)
  expect(response.status).toBe(200)
  return pageText(response)
}

const yearly = {
  name: 'Leap day',
  workflowId: 'greet',
  variables: '{"name": "Ada"}',
  cron: '0 0 29 2 *',
  timeZone: 'Europe/Berlin',
  intervalSeconds: '',
  missed: 'runOnce',
  overlap: 'skip',
}

async function create({ visitor }: SignedInUser, changes: Record<string, string> = {}) {
  const form = { ...yearly, id: uuid(), ...changes }
  const created = await visitor.post('/schedules/new', form)
  expect(created.headers.location).toBe(`/schedules/${form.id}?done=created`)
  return { form, path: `/schedules/${form.id}` }
}

test('a schedule is created once, although its form is submitted twice', async () => {
  const ada = await signIn(dashboard)
  expect(await page(ada, '/schedules')).toContain('No schedules')
  const { form, path } = await create(ada)
  await ada.visitor.post('/schedules/new', form)
  const list = await page(ada, '/schedules')
  expect(list.match(/Leap day/g)).toHaveLength(1)
  expect(list).toMatch(/0 0 29 2 \* Europe\/Berlin Active/)
  const text = await page(ada, path)
  expect(text).toContain('The latest gets a run')
  expect(text.match(/-02-28 23:00:00 UTC/g)).toHaveLength(5)
})

test('invalid fields are named, and what was entered stays', async () => {
  const ada = await signIn(dashboard)
  const form = { ...yearly, id: uuid(), cron: '0 25 * * *', variables: '{"name": 7}' }
  const refused = await ada.visitor.post('/schedules/new', form)
  expect(refused.status).toBe(400)
  expect(inputValue(refused, 'cron')).toBe('0 25 * * *')
  expect(fieldError(refused, 'cron')).toMatch(/has 25 as the hour, which is from 0 to 23/)
  const fixed = await ada.visitor.post('/schedules/new', { ...form, cron: '0 5 * * *' })
  expect(fieldError(fixed, 'variables')).toMatch(/\/name must be string/)
  const both = await ada.visitor.post('/schedules/new', { ...yearly, id: uuid(), intervalSeconds: '60' })
  expect(fieldError(both, 'intervalSeconds')).toBe('Enter either this or a cron expression.')
  expect(await page(ada, '/schedules')).toContain('No schedules')
})

test('its runs get the options of the form, and invalid ones are named', async () => {
  const ada = await signIn(dashboard)
  const options = { tags: 'customer:42 nightly', priority: '5', expiresInSeconds: '600' }
  const { path } = await create(ada, options)
  expect(await page(ada, path)).toMatch(/Tags customer:42 nightly Expires if not started after 10m Priority 5/)
  const edited = await ada.visitor.get(`${path}/edit`)
  expect(inputValue(edited, 'tags')).toBe('customer:42 nightly')
  const { headers } = await ada.visitor.post(`${path}/trigger`)
  expect(await page(ada, String(headers.location))).toMatch(/Tags customer:42 nightly/)
  const wrong = { tags: 'no;tag', priority: '11', expiresInSeconds: 'soon', concurrencyKey: 'shop 42' }
  const refused = await ada.visitor.post(`${path}/edit`, { ...yearly, ...wrong })
  expect(refused.status).toBe(400)
  for (const [name, text] of Object.entries(wrong)) {
    expect(inputValue(refused, name)).toBe(text)
    expect(fieldError(refused, name)).toMatch(/^(Enter|“)/)
  }
  // Of the workflow, which takes neither.
  const unused = { concurrencyKey: 'shop:42', browserContextId: uuid() }
  const other = await ada.visitor.post(`${path}/edit`, { ...yearly, ...unused })
  expect([fieldError(other, 'concurrencyKey'), fieldError(other, 'browserContextId')].filter(Boolean)).not.toEqual([])
})

test('a schedule is changed, paused and resumed', async () => {
  const ada = await signIn(dashboard)
  const { path } = await create(ada)
  const changed = { ...yearly, name: 'Hourly', cron: '', intervalSeconds: '3600' }
  expect((await ada.visitor.post(`${path}/edit`, changed)).headers.location).toBe(`${path}?done=changed`)
  expect(await page(ada, path)).toMatch(/Active Hourly[\s\S]* every 1h/)
  await ada.visitor.post(`${path}/state`, { paused: 'true' })
  expect(await page(ada, path)).toContain('This schedule is paused.')
  await ada.visitor.post(`${path}/state`, { paused: 'false' })
  expect(await page(ada, path)).not.toContain('This schedule is paused.')
})

test('a run starts now and is listed; a schedule is deleted, and its run stays', async () => {
  const ada = await signIn(dashboard)
  const { path } = await create(ada)
  const { headers } = await ada.visitor.post(`${path}/trigger`)
  const run = String(headers.location)
  expect(run).toMatch(/^\/runs\//)
  expect((await ada.visitor.get(path)).text).toContain(`href="${run}"`)
  expect((await ada.visitor.post(`${path}/delete`)).headers.location).toBe('/schedules?done=deleted')
  expect(await page(ada, '/schedules?done=deleted')).toContain('No schedules')
  expect((await ada.visitor.get(run)).status).toBe(200)
  const log = await page(ada, '/settings/audit-log')
  for (const action of ['created a schedule', 'started a run of a schedule', 'deleted a schedule']) {
    expect(log).toContain(action)
  }
})

/** Returns the next times, or the error, that the form shows. */
function nextTimes(form: Markup): string {
  return pageText(find(form).getByRole('status', { name: 'Next times' })).trim()
}

test('the form shows the next five times of what its script sends, or what is wrong with it', async () => {
  const ada = await signIn(dashboard)
  const shown = (query: Record<string, string>) => page(ada, `/schedules/next-times?${new URLSearchParams(query)}`)
  const leapDays = await shown({ cron: ' 0 0 29 2 * ', timeZone: 'Europe/Berlin', intervalSeconds: '' })
  expect(leapDays.match(/-02-28 23:00:00 UTC/g)).toHaveLength(5)
  expect((await shown({ cron: '', intervalSeconds: '3600' })).match(/ UTC/g)).toHaveLength(5)
  expect(await shown({ cron: '0 25 * * *' })).toMatch(/has 25 as the hour, which is from 0 to 23/)
  expect(await shown({ cron: '0 7 * *' })).toMatch(/Enter five fields/)
  expect(await shown({ cron: '0 7 * * *', timeZone: 'Europe/Atlantis' })).toMatch(/not a time zone/)
  expect(await shown({ cron: '0 7 * * <b>' })).not.toContain('07:00')
  expect(await shown({ cron: '', intervalSeconds: '1' })).toMatch(/Enter a whole number from 10 to/)
  expect(await shown({})).toMatch(/Enter a cron expression, or an interval/)
})

async function preview({ visitor }: SignedInUser, query: string): Promise<string> {
  const { status, text } = await visitor.get(`/schedules/next-times?${query}`)
  expect(status).toBe(200)
  return text
}

test('without scripts, the form shows the next times once they are known, and those of an interval count on', async () => {
  const ada = await signIn(dashboard)
  expect(nextTimes(await ada.visitor.get('/schedules/new'))).toBe('')
  const refused = await ada.visitor.post('/schedules/new', { ...yearly, id: uuid(), tags: 'no;tag' })
  expect(nextTimes(refused).match(/-02-28 23:00:00 UTC/g)).toHaveLength(5)
  const { path } = await create(ada, { cron: '', intervalSeconds: '86399' })
  const shown = await page(ada, path)
  const form = await ada.visitor.get(`${path}/edit`)
  expect(nextTimes(form)).not.toBe('')
  expect(shown).toContain(nextTimes(form))
  const query = `schedule=${path.split('/').at(-1)}&cron=&intervalSeconds=86399`
  // With milliseconds, which the text does not show.
  const [own, others] = [await preview(ada, query), await preview(await signIn(dashboard), query)]
  expect(form.text).toContain(own)
  expect(form.text).not.toContain(others)
})

test('a new schedule gets its variables from the fields of the workflow: required ones first, the others folded', async () => {
  const ada = await signIn(dashboard)
  const choice = await ada.visitor.get('/schedules/new?workflowId=greet')
  expect(find(choice).getByRole<HTMLSelectElement>('combobox', { name: 'Workflow' }).value).toBe('greet')
  expect(find(choice).getByRole('textbox', { name: /name.*required/i })).toBeTruthy()
  expect(inputValue(choice, 'variables')).toBeUndefined()
  const folded = find(choice).getByText('6 optional variables').closest('details')
  expect(folded?.open).toBe(false)
  expect(folded?.querySelector('[name="variable-name"]')).toBeNull()
  expect(folded?.previousElementSibling?.querySelector('[name="variable-name"]')).not.toBeNull()
  expect(folded?.querySelectorAll('[name^="variable-"]')).toHaveLength(6)
  const json = await ada.visitor.get('/schedules/new?workflowId=greet&as=json')
  expect(JSON.parse(inputValue(json, 'variables') ?? '')).toMatchObject({ name: '' })
  const { variables: _, ...others } = yearly
  const form = { ...others, id: uuid() }
  const refused = await ada.visitor.post('/schedules/new', form)
  expect(refused.status).toBe(400)
  expect(fieldError(refused, 'variable-name')).toBeTruthy()
  const created = await ada.visitor.post('/schedules/new', { ...form, 'variable-name': 'Grace' })
  expect(created.headers.location).toBe(`/schedules/${form.id}?done=created`)
  expect(await page(ada, `/schedules/${form.id}`)).toMatch(/Variables \{ "name": "Grace" \}/)
})

test('a variable left at its default is not stored, so that each run gets the default of its deployment', async () => {
  const ada = await signIn(dashboard)
  const { variables: _, ...others } = yearly
  const form = { ...others, workflowId: 'misreport', id: uuid() }
  const shown = await ada.visitor.get('/schedules/new?workflowId=misreport')
  const stored = async (how: string) => {
    const id = uuid()
    const created = await ada.visitor.post('/schedules/new', { ...form, id, 'variable-how': how })
    expect(created.status).toBe(303)
    return page(ada, `/schedules/${id}`)
  }
  expect(await stored(inputValue(shown, 'variable-how') ?? '')).toMatch(/Variables \{\}/)
  expect(inputValue(shown, 'variable-how')).toBe('"throw"')
  expect(await stored('"deep"')).toMatch(/"how": "deep"/)
})

/** Submits the edit form as a browser without scripts does, with some fields changed. */
async function edit({ visitor }: SignedInUser, path: string, changes: Record<string, string> = {}, query = '') {
  const button = find(await visitor.get(`${path}/edit${query}`)).getByRole<HTMLButtonElement>('button', {
    name: 'Save changes',
  })
  const fields = new (button.ownerDocument.defaultView as typeof globalThis).FormData(button.form ?? undefined)
  for (const [name, value] of Object.entries(changes)) {
    expect(fields.has(name)).toBe(true)
    fields.set(name, value)
  }
  return visitor.post(`${path}/edit`, Object.fromEntries(fields) as Record<string, string>)
}

const shownVariables = async (user: SignedInUser, path: string) => {
  const text = find(await user.visitor.get(path)).getByLabelText('Variables').textContent
  return JSON.parse(text ?? '')
}

test('the edit form has a field for each variable, filled in, and one for all of them on request', async () => {
  const ada = await signIn(dashboard)
  const stored = { name: 'Ada', times: 2, tags: ['a', 'b'], address: { city: 'Bern' } }
  const { path } = await create(ada, { variables: JSON.stringify(stored) })
  const form = await ada.visitor.get(`${path}/edit`)
  const [required, folded] = [control(form, 'variable-name'), control(form, 'variable-times')]
  expect([required?.value, folded?.value, inputValue(form, 'variable-tags')]).toEqual(['Ada', '2', 'a\nb'])
  expect([required?.closest('details'), folded?.closest('details')?.open]).toEqual([null, true])
  expect(linkPaths(form, 'Edit as JSON')).toEqual([`${path}/edit?as=json`])
  const json = await ada.visitor.get(`${path}/edit?as=json`)
  expect(JSON.parse(inputValue(json, 'variables') ?? '')).toEqual(stored)
  expect(linkPaths(json, 'Edit as fields')).toEqual([`${path}/edit`])
  expect((await edit(ada, path, { 'variable-name': 'Eve', 'variable-times': '' })).status).toBe(303)
  const { times: _, ...others } = stored
  expect(await shownVariables(ada, path)).toEqual({ ...others, name: 'Eve' })
  expect((await edit(ada, path, { variables: '{"name": "Lin"}' }, '?as=json')).status).toBe(303)
  expect(await shownVariables(ada, path)).toEqual({ name: 'Lin' })
})

test('an edited schedule keeps its secrets, unless other variables change: then they are entered again', async () => {
  const ada = await signIn(dashboard)
  const { path } = await create(ada, { variables: '{"name": "Ada", "token": "canary-4711"}' })
  const stored = { name: 'Ada', token: '********' }
  for (const query of ['', '?as=json']) {
    expect((await edit(ada, path, { name: `Renamed${query}` }, query)).status).toBe(303)
    expect(await shownVariables(ada, path)).toEqual(stored)
  }
  const refused = await edit(ada, path, { 'variable-name': 'Eve' })
  expect(refused.status).toBe(400)
  expect(fieldError(refused, 'variable-token')).toMatch(/entered again, because other variables have changed/)
  expect(inputValue(refused, 'variable-name')).toBe('Eve')
  const invalid = await edit(ada, path, { 'variable-token': 'canary-1138', cron: '0 25 * * *' })
  expect(invalid.text).not.toContain('canary')
  expect(fieldError(invalid, 'variable-token')).toMatch(/^Enter secrets again/)
  expect((await edit(ada, path, { 'variable-name': 'Eve', 'variable-token': 'canary-1138' })).status).toBe(303)
  expect(await shownVariables(ada, path)).toEqual({ ...stored, name: 'Eve' })
})

test('a default that the schedule does not have is shown in its edit form, and not stored', async () => {
  const ada = await signIn(dashboard)
  const { path } = await create(ada, { workflowId: 'misreport', variables: '{}' })
  expect(inputValue(await ada.visitor.get(`${path}/edit`), 'variable-how')).toBe('"throw"')
  expect((await edit(ada, path)).status).toBe(303)
  expect(await shownVariables(ada, path)).toEqual({})
  const explicit = await create(ada, { workflowId: 'misreport', variables: '{"how": "throw"}' })
  expect((await edit(ada, explicit.path)).status).toBe(303)
  expect(await shownVariables(ada, explicit.path)).toEqual({ how: 'throw' })
})
