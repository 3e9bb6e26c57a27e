/** The tab "Runs": the list, the page of a run, cancelling and deleting. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { signIn, startDashboardService } from '../support/dashboard.ts'
import { find, linkPaths, pageText, readDocument } from '../support/html.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { hold, newUser, page, queue, waitForPage } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

describe('the list of runs', () => {
  test('explains an empty list and an empty result', async () => {
    const user = await newUser(service)
    const empty = await page(user, '/runs')
    expect(empty).toContain('No runs yet')
    expect(empty).toContain(`curl -X PUT ${service.executionUrl}/v1/execution/queue-remote/approve`)
    await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    expect(await page(user, '/runs?status=failed')).toContain('No runs match these filters')
  })

  test("shows only the account's runs, with who queued them and why they wait", async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const ownId = await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=3600')
    const otherId = await queue(eve, 'greet', { name: 'Eve' }, '?delaySeconds=3600')
    const { text } = await ada.visitor.get('/runs')
    expect(text).toContain(`href="/runs/${ownId}"`)
    expect(text).not.toContain(otherId)
    expect(pageText({ text })).toMatch(/Queued Greet somebody …\w{8} starts .* test/)
    expect(text).toContain('id="runs" data-live="/runs/changes"')
  })

  test('names the user, or says that the key was deleted', async () => {
    const { id: accountId, createKey, deleteKey } = await service.createAccount()
    const user = await signIn(service, { accountId, name: 'Ada <b>Lovelace</b>' })
    const key = await createKey()
    const id = await queue({ service, key: key.value }, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    await deleteKey(key.id)
    expect(await page(user, `/runs/${id}`)).toContain('Queued by deleted key')
    const form = new URLSearchParams({ 'variable-name': 'Ada', delaySeconds: '60' })
    const queued = await user.visitor.post('/workflows/greet', form)
    expect(await page(user, queued.headers.location as string)).toContain('Queued by Ada <b>Lovelace</b>')
  })

  test('is filtered by workflow, statuses and time, and searched by id', async () => {
    const user = await newUser(service)
    const greetingId = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    const heldId = await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=60')
    await user.visitor.post(`/runs/${heldId}/cancel`)
    const listsRuns = async (search: string) => {
      const { text } = await user.visitor.get(`/runs?${search}`)
      return [greetingId, heldId].map((id) => text.includes(`"/runs/${id}"`))
    }
    const minute = async (id: string, minutes: number) => {
      const [row] = await service.rows<{ created_at: number }>('SELECT created_at FROM runs WHERE id = ?', id)
      return new Date(Number(row?.created_at) + minutes * 60_000).toISOString().slice(0, 16)
    }
    expect(await listsRuns('')).toEqual([true, true])
    expect(await listsRuns('workflow=greet')).toEqual([true, false])
    expect(await listsRuns('workflow=gone')).toEqual([false, false])
    expect(await listsRuns('status=cancelled')).toEqual([false, true])
    expect(await listsRuns('status=cancelled&status=queued')).toEqual([true, true])
    const period = `from=${await minute(greetingId, 0)}&until=${await minute(heldId, 1)}`
    expect(await listsRuns(period)).toEqual([true, true])
    expect(await listsRuns(`${period}&zone=Asia/Tokyo`)).toEqual([false, false])
    expect(await listsRuns(`from=${await minute(heldId, 1)}`)).toEqual([false, false])
    expect(await listsRuns(`until=${await minute(greetingId, 0)}`)).toEqual([false, false])
    const found = await user.visitor.get(`/runs?search=%20${heldId.toUpperCase()}`)
    expect([found.status, found.headers.location]).toEqual([303, `/runs/${heldId}`])
    expect(await page(await newUser(service), `/runs?search=${heldId}`)).toContain('No runs match these filters')
  })

  test('is searched by what its rows show: the end of an id, and the title or id of a workflow', async () => {
    const user = await newUser(service)
    const greetingId = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    const heldId = await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=60')
    await user.visitor.post(`/runs/${heldId}/cancel`)
    const search = async (text: string, visitor = user.visitor) => {
      const { status, headers, text: body } = await visitor.get(`/runs?${new URLSearchParams({ search: text })}`)
      return status === 303 ? headers.location : pageText({ text: body })
    }
    for (const id of [greetingId, heldId]) {
      expect(await page(user, '/runs')).toContain(`…${id.slice(-8)}`)
      expect(await search(id.slice(-8))).toBe(`/runs/${id}`)
      expect(await search(`…${id.slice(-8).toUpperCase()}`)).toBe(`/runs/${id}`)
    }
    expect(await search(greetingId.slice(-8), (await newUser(service)).visitor)).toContain('No runs match')
    expect(await search('greet')).toBe('/runs?workflow=greet')
    expect(await search('greet somebody')).toBe('/runs?workflow=greet')
    expect(await search('hold')).toBe('/runs?workflow=hold')
    // Several workflows, or also runs with such a tag: the page links to the workflows.
    await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=60&tag=greet')
    expect(await search('greet')).toContain('Runs of workflows that the search names: Greet somebody')
    await service.change("UPDATE runs SET workflow_id = 'removed' WHERE id = ?", heldId)
    expect(await search('removed')).toBe('/runs?workflow=removed')
  })

  test('is searched by tag and by a word of the error, combined with other filters', async () => {
    const user = await newUser(service)
    const failed = await queue(user, 'count-words', { path: 'missing.md' })
    await waitForPage(user, failed, 'Failed Count the words')
    const tagged = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60&tag=Nightly')
    const listsRuns = async (search: string) => {
      const { text } = await user.visitor.get(`/runs?${search}`)
      return [failed, tagged].map((id) => text.includes(`"/runs/${id}"`))
    }
    expect(await listsRuns('search=Nightly')).toEqual([false, true])
    expect(await listsRuns('search=cannot+be+read')).toEqual([true, false])
    expect(await listsRuns('search=cannot+be+read&status=failed&workflow=count-words')).toEqual([true, false])
    expect(await listsRuns('search=cannot+be+read&status=queued')).toEqual([false, false])
    for (const search of ['Nightly+import', 'nothing', '%00', '%F0%9F%92%A9', '.']) {
      expect(await listsRuns(`search=${search}`)).toEqual([false, false])
    }
    expect((await user.visitor.get('/runs?search=missing')).text).toContain(
      'href="/runs?search=missing&amp;status=queued"',
    )
  })

  test('has a link for each status that adds it to the filter or removes it', async () => {
    const user = await newUser(service)
    await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    const list = await user.visitor.get('/runs?workflow=greet&status=queued')
    const current = find(list).getByRole('link', { name: 'Queued', current: true })
    expect(current.getAttribute('href')).toBe('/runs?workflow=greet')
    expect(linkPaths(list, 'Failed')).toEqual(['/runs?workflow=greet&status=queued&status=failed'])
  })

  test('is linked from the tags on the page of a run', async () => {
    const user = await newUser(service)
    const tagged = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60&tag=customer:42')
    const run = await user.visitor.get(`/runs/${tagged}`)
    expect(run.text).toContain('href="/runs?search=customer%3A42"')
    expect((await user.visitor.get('/runs?search=customer%3A42')).text).toContain(`"/runs/${tagged}"`)
  })

  test('is paginated with its filter, and an invalid cursor redirects to the first page', async () => {
    const user = await newUser(service)
    const ids = await Promise.all(
      Array.from({ length: 53 }, () => queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')),
    )
    const first = await user.visitor.get('/runs?status=queued')
    const [older = ''] = linkPaths(first, /Older runs/)
    const second = await user.visitor.get(older)
    const shownOn = (text: string) => ids.filter((id) => text.includes(`"/runs/${id}"`))
    expect([shownOn(first.text).length, shownOn(second.text).length]).toEqual([50, 3])
    expect(new Set([...shownOn(first.text), ...shownOn(second.text)]).size).toBe(53)
    expect(pageText(second)).toContain('← Newest runs')
    const other = await user.visitor.get(older.replace('queued', 'failed'))
    expect([other.status, other.headers.location]).toEqual([303, '/runs?status=failed'])
  })
})

describe('the page of a run', () => {
  test('shows attempts, steps, log, variables and output, with secrets masked', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'betray', { token: 'hunter2hunter2', fails: false })
    const text = await waitForPage(user, id, 'Succeeded Say a secret')
    expect(text).toMatch(/Attempt 1 Failed .* The workflow failed\. The run is retried\./)
    const attempt =
      /Error The secrets are \*{8} and undefined\. Stack at run \(betray\.ts:\d+:\d+\) Caused by Error: The secrets/
    expect(text).toMatch(attempt)
    expect(text).toMatch(/Attempt 2 Succeeded .* 1 step: 1 reused .* remember .* reused/)
    expect(text).toContain('"token": "********"')
    expect(text).toContain('The secrets are ********')
    expect(text).toContain('"said"')
    expect(text).toContain('Attempts 2 of 2')
    const page = await user.visitor.get(`/runs/${id}`)
    expect(page.text).not.toContain('hunter2')
    const document = readDocument(page)
    expect(document.querySelector('[data-live]')).toBe(null)
    expect(document.title).toBe(`Succeeded · Say a secret …${id.slice(-8)} · execution-service`)
    expect(document.querySelector('link[rel=icon]')?.getAttribute('href')).toMatch(/\/icon-good\.svg/)
    expect(pageText(find(page).getByRole('status'))).toMatch(/Succeeded/)
  })

  test('shows why a run failed', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'count-words', { path: 'missing.md' })
    const text = await waitForPage(user, id, 'Failed Count the words')
    expect(text).toContain('The workflow threw an error. Error missing.md does not exist or cannot be read.')
  })

  test('escapes markup everywhere', async () => {
    const user = await newUser(service)
    const name = '<img src=x onerror=alert(1)>"&\''
    const id = await queue(user, 'greet', { name })
    const text = await waitForPage(user, id, 'Succeeded Greet somebody')
    expect(text).toContain(`Greeting ${name}`)
    expect(text).toContain(JSON.stringify(`Hello, ${name}!`))
    for (const path of ['/runs', `/runs/${id}`, `/workflows/greet?from=${id}`, `/workflows/greet?from=${id}&as=json`]) {
      expect((await user.visitor.get(path)).text).not.toContain('<img src=x')
    }
  })

  test('shows what a run waits for', async () => {
    const user = await newUser(service)
    const delayed = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=600&expiresInSeconds=900&priority=3')
    const text = await page(user, `/runs/${delayed}`)
    expect(text).toMatch(/Starts \d{4}-.* UTC ?\. Expires .* if it has not started\./)
    expect(text).toContain('Priority 3')
    const first = await hold(user, 'single')
    await waitForPage(user, first.id, 'Running Hold alone')
    const second = await hold(user, 'single')
    expect(await page(user, `/runs/${second.id}`)).toContain(
      'Waiting for another run to finish: this workflow runs one at a time.',
    )
  })

  test('says when no worker is running', async () => {
    const dashboard = await startDashboardService()
    onTestFinished(dashboard.stop)
    const user = await signIn(dashboard)
    const queued = await user.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    expect(pageText(await user.visitor.get(String(queued.headers.location)))).toContain('No workers are running.')
  })

  test('shows the last log lines and the number of omitted ones', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=600')
    const insert = "INSERT INTO run_events (run_id, sequence, at, type, data) VALUES (?, ?, ?, 'log', ?)"
    for (let line = 1; line <= 203; line++) {
      const data = JSON.stringify({ attempt: 1, level: 'warn', message: `line ${line}.` })
      await service.change(insert, id, line + 1, Date.now(), data)
    }
    const text = await page(user, `/runs/${id}`)
    expect(text).toContain('3 earlier lines are not shown.')
    expect(text).not.toContain('line 3.')
    expect(text).toContain('line 4.')
    expect(text).toContain('line 203.')
    expect(text).toContain(`curl -N ${service.executionUrl}/v1/execution/runs/${id}/events`)
  })

  test('is accessible only to the run’s account', async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const id = await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    for (const path of [
      `/runs/${id}`,
      `/runs/${id}/changes`,
      `/runs/${id}/cancel`,
      `/runs/${id}/delete`,
      `/workflows/greet?from=${id}`,
    ]) {
      expect((await eve.visitor.get(path)).status).toBe(404)
    }
    expect((await eve.visitor.post(`/runs/${id}/cancel`)).status).toBe(404)
    const form = { 'variable-name': 'Eve', from: id }
    expect((await eve.visitor.post('/workflows/greet', form)).status).toBe(404)
    expect(await page(ada, `/runs/${id}`)).toContain('Queued Greet somebody')
    for (const id of ['none', crypto.randomUUID(), '%00', 'a'.repeat(500)]) {
      expect((await ada.visitor.get(`/runs/${id}`)).status).toBe(404)
    }
  })
})

describe('cancelling', () => {
  test('asks for confirmation and cancels a queued run', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    expect(await page(user, `/runs/${id}/cancel`)).toContain('Cancel this run?')
    expect(await page(user, `/runs/${id}`)).toContain('Queued Greet somebody')
    const response = await user.visitor.post(`/runs/${id}/cancel`)
    expect([response.status, response.headers.location]).toEqual([303, `/runs/${id}`])
    expect(await page(user, `/runs/${id}`)).toMatch(/Cancelled Greet somebody .* Cancelled by Ada\./)
  })

  test('by an API key is shown with the name of the key', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    const headers = { Authorization: `Bearer ${user.key}` }
    await fetch(`${service.executionUrl}/v1/execution/runs/${id}/cancel`, { method: 'POST', headers })
    expect(await page(user, `/runs/${id}`)).toContain('Cancelled by key test')
  })

  test('stops a running run', async () => {
    const user = await newUser(service)
    const { id } = await hold(user)
    await waitForPage(user, id, 'Running Hold until a file exists')
    await user.visitor.post(`/runs/${id}/cancel`)
    expect(await waitForPage(user, id, 'Cancelled Hold until')).toContain('Attempt 1 Cancelled')
  })

  test('has no effect on a finished run', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' })
    await waitForPage(user, id, 'Succeeded Greet somebody')
    for (const response of [
      await user.visitor.get(`/runs/${id}/cancel`),
      await user.visitor.post(`/runs/${id}/cancel`),
    ]) {
      expect([response.status, response.headers.location]).toEqual([303, `/runs/${id}?done=finished`])
    }
    const text = await page(user, `/runs/${id}?done=finished`)
    expect(text).toContain('This run had already finished')
    expect(text).toContain('Succeeded Greet somebody')
  })
})

describe('deleting', () => {
  test('asks for confirmation, erases a finished run and records who did it', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' })
    await waitForPage(user, id, 'Succeeded Greet somebody')
    expect((await user.visitor.get(`/runs/${id}`)).text).toContain(`href="/runs/${id}/delete"`)
    const confirmation = await page(user, `/runs/${id}/delete`)
    expect(confirmation).toMatch(/Delete this run\? .* This cannot be undone\. .* Succeeded Greet somebody/)
    const response = await user.visitor.post(`/runs/${id}/delete`)
    expect([response.status, response.headers.location]).toEqual([303, '/runs?done=deleted'])
    expect(await page(user, '/runs?done=deleted')).toContain('Run deleted. Its data was erased.')
    expect((await user.visitor.get(`/runs/${id}`)).status).toBe(404)
    expect((await user.visitor.post(`/runs/${id}/delete`)).status).toBe(404)
    expect(await page(user, '/settings/audit-log')).toContain('deleted a run')
  })

  test('refuses an unfinished run, and says what to do', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    expect((await user.visitor.get(`/runs/${id}`)).text).not.toContain(`href="/runs/${id}/delete"`)
    for (const response of [
      await user.visitor.get(`/runs/${id}/delete`),
      await user.visitor.post(`/runs/${id}/delete`),
    ]) {
      expect([response.status, response.headers.location]).toEqual([303, `/runs/${id}?done=unfinished`])
    }
    expect(await page(user, `/runs/${id}?done=unfinished`)).toContain('Cancel it before you delete it')
  })
})
