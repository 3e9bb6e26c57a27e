/** Runs that use a browser: choosing a browser context, and their artifacts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewArtifact } from '../../src/domain/runs/artifact.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import { fieldError, find, inputValue, pageText, readRows } from '../support/html.ts'
import { claim, leaseContext, newContext, queueFromForm, startBrowserDashboard } from './browser-context-helpers.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard()
})

afterAll(() => dashboard.stop())

function storedRuns({ accountId }: SignedInUser) {
  const runs = dashboard.domain.store.read.query.selectFrom('runs').where('account_id', '=', accountId)
  return runs.select(['browser_context_id', 'persist_context']).execute()
}

describe('the form of a workflow that uses a browser', () => {
  test('offers the browser contexts, with none selected', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    const formPage = await ada.visitor.get('/workflows/browse')
    expect([inputValue(formPage, 'browserContextId'), inputValue(formPage, 'persistContext')]).toEqual([
      '',
      'onSuccess',
    ])
    expect(pageText(formPage)).toContain('Browser one per run')
    expect(pageText(formPage)).toContain('Shop (empty)')
    await queueFromForm(ada, { browserContextId: '', persistContext: 'always' })
    await queueFromForm(ada, { browserContextId: id.toUpperCase(), persistContext: 'never' })
    expect(await storedRuns(ada)).toEqual([
      { browser_context_id: null, persist_context: null },
      { browser_context_id: id, persist_context: 'never' },
    ])
    const plain = await ada.visitor.get('/workflows/plain')
    expect(plain.text).not.toContain('browserContextId')
    expect(pageText(plain)).not.toContain('Browser one per run')
  })

  test('preselects the context of the run that is run again, also in the curl command', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    // Makes the context older than the newest hundred, which the form lists.
    for (let index = 0; index < 101; index++) await newContext(dashboard, ada)
    const run = await queueFromForm(ada, { browserContextId: id, persistContext: 'never' })
    const again = await ada.visitor.get(`/workflows/browse?from=${run}`)
    expect([inputValue(again, 'browserContextId'), inputValue(again, 'persistContext')]).toEqual([id, 'never'])
    expect(pageText(again)).toContain(`queue-remote/browse?browserContextId=${id}&persistContext=never'`)
    const chosen = await ada.visitor.get(`/workflows/browse?browserContextId=${id}`)
    expect([inputValue(chosen, 'browserContextId'), inputValue(chosen, 'persistContext')]).toEqual([id, 'onSuccess'])
    await ada.visitor.post(`/browser-contexts/${id}/delete`)
    const gone = await ada.visitor.get(`/workflows/browse?from=${run}`)
    expect(inputValue(gone, 'browserContextId')).toBe('')
    expect(fieldError(gone, 'browserContextId')).toContain('was deleted. Choose another one, or none.')
    expect(pageText(gone)).not.toContain('?browserContextId')
  })

  test('refuses a deleted or foreign context, and any context for a workflow without a browser', async () => {
    const ada = await signIn(dashboard)
    const others = await newContext(dashboard, await signIn(dashboard))
    const key = inputValue(await ada.visitor.get('/workflows/browse'), 'key') ?? ''
    for (const id of [others.id, crypto.randomUUID(), 'none']) {
      const response = await ada.visitor.post('/workflows/browse', {
        key,
        browserContextId: id,
        'variable-url': 'kept',
      })
      expect(response.status).toBe(400)
      expect(pageText(response)).toContain('The run was not queued.')
      expect(fieldError(response, 'browserContextId')).toContain('was deleted. Choose another one, or none.')
      expect(inputValue(response, 'variable-url')).toBe('kept')
    }
    const invalid = await ada.visitor.post('/workflows/browse', { key, persistContext: 'toString' })
    expect([invalid.status, fieldError(invalid, 'browserContextId')]).toEqual([
      400,
      'Choose when to save the browser state.',
    ])
    const { id } = await newContext(dashboard, ada)
    const plain = await ada.visitor.post('/workflows/plain', { key, browserContextId: id })
    expect(plain.status).toBe(400)
    expect(pageText(plain)).toContain('this workflow uses no browser, so it takes no browser context.')
    expect(await storedRuns(ada)).toEqual([])
  })
})

describe('the page of a run', () => {
  const pixel = Buffer.from('89504e470d0a1a0a', 'hex')
  const artifacts: NewArtifact[] = [
    { name: 'page.png', mediaType: 'image/png', content: pixel },
    { name: 'page.html.txt', mediaType: 'text/plain', content: Buffer.from('<script>alert(1)</script>') },
    { name: 'invoice.pdf', mediaType: 'application/pdf', content: Buffer.alloc(2048, '%') },
  ]

  async function runWith(ada: SignedInUser, artifacts: NewArtifact[]): Promise<string> {
    const runId = await queueFromForm(ada, {})
    const lease = (await claim(dashboard)).find((each) => each.runId === runId)
    for (const artifact of artifacts) {
      const data = {
        attempt: 1,
        name: artifact.name,
        mediaType: artifact.mediaType,
        sizeBytes: artifact.content.length,
      }
      const report = { at: Date.now(), type: 'artifact', data } as const
      if (!lease || !(await dashboard.domain.queue.keepArtifact(lease, artifact, [report])))
        throw new Error('The artifact was not stored.')
    }
    return runId
  }

  test('lists artifacts, previews images, and logs each artifact', async () => {
    const ada = await signIn(dashboard)
    const id = await runWith(ada, artifacts)
    const page = await ada.visitor.get(`/runs/${id}`)
    const rows = readRows(page)
    // Sorted, because artifacts created in the same millisecond have no order.
    expect(rows.map((row) => row.split(/ \d{4}-/)[0]).sort()).toEqual([
      'invoice.pdf application/pdf 2 KiB',
      'page.html.txt text/plain 25 B',
      'page.png image/png 8 B',
    ])
    const pictures = find(page).getAllByRole('img', { name: /page|invoice/ })
    expect(pictures.map((each) => each.getAttribute('src')?.match(/artifacts\/([^?]*)/)?.[1])).toEqual(['page.png'])
    expect(pageText(page)).toContain('Created artifact invoice.pdf, 2 KiB')
    expect(pageText(await ada.visitor.get(`/runs/${await runWith(ada, [])}`))).not.toContain('Artifacts')
  })

  test('serves artifacts as downloads that browsers do not render', async () => {
    const ada = await signIn(dashboard)
    const id = await runWith(ada, artifacts)
    for (const { name, mediaType, content } of artifacts.slice(1)) {
      const { status, headers, text } = await ada.visitor.get(`/runs/${id}/artifacts/${name}`)
      expect([status, text]).toEqual([200, Buffer.from(content).toString()])
      expect(headers).toMatchObject({
        'content-type': mediaType,
        'content-disposition': `attachment; filename=${name}`,
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
        'cache-control': 'no-store',
      })
    }
    const newBrowser = await signIn(dashboard)
    expect((await newBrowser.visitor.get(`/runs/${id}/artifacts/page.png`)).status).toBe(404)
    for (const name of ['none.png', '..%2f..', '%00', 'page.png%20']) {
      expect([name, (await ada.visitor.get(`/runs/${id}/artifacts/${name}`)).status]).toEqual([name, 404])
    }
  })

  test('says when the browser state could not be saved', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    const lease = await leaseContext(dashboard, ada, id)
    const error = { name: 'ContextNotSaved', message: 'It is too large.' }
    const outcome = { kind: 'failed', reason: 'contextNotSaved', error } as const
    await dashboard.domain.queue.complete(lease, outcome, { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 })
    const text = pageText(await ada.visitor.get(`/runs/${lease.runId}`))
    expect(text).toContain('The browser state could not be saved. The browser context is unchanged.')
    expect(text).toContain('ContextNotSaved It is too large.')
    expect(pageText(await ada.visitor.get(`/browser-contexts/${id}`))).toContain('In use by no run')
  })
})
