/** Files in the dashboard: the upload of the queue form, the files on the page of a run, and downloads. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { inputValue } from '../support/html.ts'

let dashboard: DashboardService
beforeAll(async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('../operations/file-workflows', import.meta.url))
  dashboard = await startDashboardService({ WORKFLOWS_DIR, FILE_MAX_MB: '1' })
})
afterAll(() => dashboard.stop())

const cookieOf = ({ visitor }: SignedInUser) =>
  [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

/** As the dashboard's script does. */
function upload(user: SignedInUser, content: string, name = 'notes.txt', origin = new URL(dashboard.url).origin) {
  const headers = { Cookie: cookieOf(user), Origin: origin, 'Content-Type': 'text/plain' }
  const url = `${dashboard.url}/files?name=${encodeURIComponent(name)}`
  return fetch(url, { method: 'POST', headers, body: content, redirect: 'manual' })
}

test('a file that was uploaded goes to a run, whose page has a link to it', async () => {
  const ada = await signIn(dashboard)
  const form = await ada.visitor.get('/workflows/digest')
  expect(form.text).toMatch(/<input type="text" id="[^"]*" name="variable-document"[^>]* data-upload="\/files"/)
  const response = await upload(ada, 'Hello', 'größe.txt')
  expect(response.status).toBe(200)
  const id = await response.text()
  const key = inputValue(form, 'key') ?? ''
  const queued = await ada.visitor.post('/workflows/digest', { key, 'variable-document': id })
  const page = await ada.visitor.get(String(queued.headers.location))
  expect(page.text).toContain(`<a href="/files/${id}" download><strong>größe.txt</strong></a>`)
  const download = await fetch(`${dashboard.url}/files/${id}`, { headers: { Cookie: cookieOf(ada) } })
  expect([download.headers.get('content-type'), await download.text()]).toEqual(['application/octet-stream', 'Hello'])
  expect(download.headers.get('content-disposition')).toContain("filename*=UTF-8''gr%C3%B6%C3%9Fe.txt")
  const bo = await signIn(dashboard)
  expect((await bo.visitor.get(`/files/${id}`)).status).toBe(404)
  const refused = await bo.visitor.post('/workflows/digest', { key: crypto.randomUUID(), 'variable-document': id })
  expect(refused.text).toContain('Names no file of this account.')
})

test('an upload is refused that is too large, from another site, or of a viewer', async () => {
  const ada = await signIn(dashboard)
  const large = await upload(ada, 'x'.repeat(1024 * 1024 + 1))
  expect([large.status, await large.text()]).toEqual([413, 'The body may have at most 1048576 bytes.'])
  expect((await upload(ada, 'Hello', '..')).status).toBe(400)
  expect((await upload(ada, 'Hello', 'a', 'https://evil.example')).status).toBe(403)
  const viewer = await signIn(dashboard, { role: 'viewer', accountId: ada.accountId })
  expect((await upload(viewer, 'Hello')).status).toBe(403)
})
