/** The tab "Runs": what it shows of an account's runs and to whom, and cancelling them. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { pageText, signIn, startDashboardService } from '../support/dashboard.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { hold, newUser, page, pageSaying, queue } from './run-pages.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

describe('the list', () => {
  test('says what to do when there is no run yet, and when none fits', async () => {
    const user = await newUser(service)
    const empty = await page(user, '/runs')
    expect(empty).toContain('No runs yet')
    expect(empty).toContain(`curl -X PUT ${service.executionUrl}/v1/execution/queue-remote/betray`)
    await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    expect(await page(user, '/runs?status=failed')).toContain('No runs match these filters')
  })

  test("shows the account's own runs alone, who queued them, and why they wait", async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const mine = await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=3600')
    const others = await queue(eve, 'greet', { name: 'Eve' }, '?delaySeconds=3600')
    const { text } = await ada.visitor.get('/runs')
    expect(text).toContain(`href="/runs/${mine}"`)
    expect(text).not.toContain(others)
    expect(pageText({ text })).toMatch(/Queued starts .* Greet somebody greet · …\w{8} .* test/)
    expect(text).toContain('id="runs" data-live="/runs/changes"')
  })

  test('says who queued a run also when the key is gone, or when it was a user', async () => {
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

  test('is filtered by workflow, status and day', async () => {
    const user = await newUser(service)
    const greeting = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    const held = await queue(user, 'hold', { file: '/nowhere' }, '?delaySeconds=60')
    await user.visitor.post(`/runs/${held}/cancel`)
    const shown = async (search: string) => {
      const { text } = await user.visitor.get(`/runs?${search}`)
      return [greeting, held].map((id) => text.includes(`"/runs/${id}"`))
    }
    // Of the runs, between which midnight may be, and not of now.
    const day = async (id: string, days: number) => {
      const [row] = await service.rows<{ created_at: number }>('SELECT created_at FROM runs WHERE id = ?', id)
      return new Date(Number(row?.created_at) + days * 86_400_000).toISOString().slice(0, 10)
    }
    expect(await shown('')).toEqual([true, true])
    expect(await shown('workflow=greet')).toEqual([true, false])
    expect(await shown('workflow=gone')).toEqual([false, false])
    expect(await shown('status=cancelled')).toEqual([false, true])
    expect(await shown('status=unfinished')).toEqual([true, false])
    expect(await shown(`from=${await day(greeting, 0)}&until=${await day(held, 0)}`)).toEqual([true, true])
    expect(await shown(`from=${await day(held, 1)}`)).toEqual([false, false])
    expect(await shown(`until=${await day(greeting, -1)}`)).toEqual([false, false])
  })

  test('goes on over pages, which keep the filter; a cursor of another list leads to the first one', async () => {
    const user = await newUser(service)
    const ids = await Promise.all(
      Array.from({ length: 53 }, () => queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')),
    )
    const first = await user.visitor.get('/runs?status=queued')
    const older =
      first.text.match(/href="(\/runs\?status=queued&amp;cursor=[^"]+)"/)?.[1]?.replaceAll('&amp;', '&') ?? ''
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
  test('says how it went: attempts with their steps, log, variables and output, with secrets masked', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'betray', { token: 'hunter2hunter2', fails: false })
    const text = await pageSaying(user, id, 'Succeeded Say a secret')
    expect(text).toMatch(/Attempt 1 Failed .* The workflow failed\. The run is retried\./)
    expect(text).toMatch(/Attempt 2 Succeeded .* remember .* reused/)
    expect(text).toContain('"token": "********"')
    expect(text).toContain('The secrets are ********')
    expect(text).toContain('"said"')
    expect(text).toContain('Attempts 2 of 2')
    const { text: source } = await user.visitor.get(`/runs/${id}`)
    expect(source).not.toContain('hunter2')
    expect(source).not.toContain('data-live')
  })

  test('says why a run has failed', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'count-words', { path: 'missing.md' })
    const text = await pageSaying(user, id, 'Failed Count the words')
    expect(text).toContain('The workflow threw an error. Error ENOENT: no such file or directory')
  })

  test('shows markup as the text that it is, wherever it stands', async () => {
    const user = await newUser(service)
    const name = '<img src=x onerror=alert(1)>"&\''
    const id = await queue(user, 'greet', { name })
    const text = await pageSaying(user, id, 'Succeeded Greet somebody')
    expect(text).toContain(`Greeting ${name}`)
    expect(text).toContain(JSON.stringify(`Hello, ${name}!`))
    for (const path of ['/runs', `/runs/${id}`, `/workflows/greet?from=${id}`, `/workflows/greet?from=${id}&as=json`]) {
      expect((await user.visitor.get(path)).text).not.toContain('<img src=x')
    }
  })

  test('says what a run waits for', async () => {
    const user = await newUser(service)
    const delayed = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=600&expiresInSeconds=900&priority=3')
    const text = await page(user, `/runs/${delayed}`)
    expect(text).toMatch(/Starts \d{4}-.* UTC ?\. Expires .* if it has not started\./)
    expect(text).toContain('Priority 3')
    const first = await hold(user, 'single')
    await pageSaying(user, first.id, 'Running Hold alone')
    const second = await hold(user, 'single')
    expect(await page(user, `/runs/${second.id}`)).toContain(
      'Waiting for another run to finish: this workflow runs one at a time.',
    )
  })

  test('says so when there is no worker', async () => {
    const served = await startDashboardService()
    onTestFinished(served.stop)
    const user = await signIn(served)
    const queued = await user.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    expect(pageText(await user.visitor.get(String(queued.headers.location)))).toContain('No workers are running.')
  })

  test('has the last lines of the log, and says how many are left out', async () => {
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

  test('and everything else of a run is there for its own account alone', async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const id = await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    for (const path of [`/runs/${id}`, `/runs/${id}/changes`, `/runs/${id}/cancel`, `/workflows/greet?from=${id}`]) {
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
  test('asks first, and ends a run that waits', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    expect(await page(user, `/runs/${id}/cancel`)).toContain('Cancel this run?')
    expect(await page(user, `/runs/${id}`)).toContain('Queued Greet somebody')
    const answer = await user.visitor.post(`/runs/${id}/cancel`)
    expect([answer.status, answer.headers.location]).toEqual([303, `/runs/${id}`])
    expect(await page(user, `/runs/${id}`)).toMatch(/Cancelled Greet somebody .* Cancelled by a user or an API key\./)
  })

  test('makes a running one end', async () => {
    const user = await newUser(service)
    const { id } = await hold(user)
    await pageSaying(user, id, 'Running Hold until a file exists')
    await user.visitor.post(`/runs/${id}/cancel`)
    expect(await pageSaying(user, id, 'Cancelled Hold until')).toContain('Attempt 1 Cancelled')
  })

  test('of one that has finished changes nothing, and says so', async () => {
    const user = await newUser(service)
    const id = await queue(user, 'greet', { name: 'Ada' })
    await pageSaying(user, id, 'Succeeded Greet somebody')
    for (const answer of [
      await user.visitor.get(`/runs/${id}/cancel`),
      await user.visitor.post(`/runs/${id}/cancel`),
    ]) {
      expect([answer.status, answer.headers.location]).toEqual([303, `/runs/${id}?done=finished`])
    }
    const text = await page(user, `/runs/${id}?done=finished`)
    expect(text).toContain('This run had already finished')
    expect(text).toContain('Succeeded Greet somebody')
  })
})
