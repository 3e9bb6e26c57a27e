/** The overview: the last runs, and the statistics of each workflow in a range of time. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkPaths, pageText, readDocument } from '../support/html.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { newUser, page, queue, waitForPage } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

test('says that no run has finished, and what to do', async () => {
  const user = await newUser(service)
  expect(await page(user, '/')).toContain('No finished runs in the last 24 hours')
  expect(await page(user, '/?range=1h')).toContain('No finished runs in the last hour')
  expect(await page(user, '/?range=toString')).toContain('No finished runs in the last 24 hours')
})

test('shows runs as soon as they have finished, with links to the list of the same runs', async () => {
  const user = await newUser(service)
  const failed = await queue(user, 'count-words', { path: 'missing.md' })
  await waitForPage(user, failed, 'Failed Count the words')
  const greeted = await queue(user, 'greet', { name: 'Ada' })
  await waitForPage(user, greeted, 'Succeeded')
  const waiting = await queue(user, 'greet', { name: 'Ada' }, '?delaySeconds=60')
  for (const range of ['1h', '24h', '7d']) {
    const { text } = await user.visitor.get(`/?range=${range}`)
    const words = pageText({ text })
    expect(words).toMatch(/Count the words of a text file 1 100\.0% ≈\s\d/)
    expect(words).toMatch(/Greet somebody 1 0\.0% ≈\s\d/)
    // Two, if the bar has changed since the first run was queued.
    const bars = [...readDocument({ text }).querySelectorAll('a:has(> title)')]
    const drawn = bars.filter((bar) => !/: none/.test(bar.textContent ?? ''))
    const paths = drawn.map((bar) => bar.getAttribute('href') ?? '')
    const lists = (await Promise.all(paths.map((path) => user.visitor.get(path)))).map((list) => list.text).join()
    expect([failed, greeted, waiting].map((id) => lists.includes(`"/runs/${id}"`))).toEqual([true, true, false])
    const [failures = ''] = linkPaths({ text }, '100.0%')
    const listed = (await user.visitor.get(failures)).text
    expect([failed, greeted].map((id) => listed.includes(`"/runs/${id}"`))).toEqual([true, false])
    expect(words.indexOf('Last runs')).toBeLessThan(words.indexOf(`…${waiting.slice(-8)}`))
  }
})
