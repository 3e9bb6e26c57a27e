/** Runs that use a browser: choosing their browser context, and what they have made. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewArtifact } from '../../src/domain/runs/artifacts.ts'
import {
  type DashboardService,
  fieldError,
  inputValue,
  pageText,
  type SignedInUser,
  signIn,
} from '../support/dashboard.ts'
import { claim, holdContext, newContext, queueWith, serveBrowsers } from './context-pages.ts'

let served: DashboardService

beforeAll(async () => {
  served = await serveBrowsers()
})

afterAll(() => served.stop())

/** The option of the page's select that is chosen, or its first one. */
function chosenOf({ text }: { text: string }, name: string): string | undefined {
  const select = text.match(new RegExp(`<select[^>]*name="${name}"[^]*?</select>`))?.[0]
  return (select?.match(/value="([^"]*)" selected/) ?? select?.match(/value="([^"]*)"/))?.[1]
}

function storedRuns({ accountId }: SignedInUser) {
  const runs = served.domain.store.read.query.selectFrom('runs').where('account_id', '=', accountId)
  return runs.select(['browser_context_id', 'persist_context']).execute()
}

describe('the form of a workflow that uses a browser', () => {
  test('lets a browser context be chosen, none first, and says when it is kept', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada, 'Shop')
    const shown = await ada.visitor.get('/workflows/browse')
    expect([chosenOf(shown, 'browserContextId'), chosenOf(shown, 'persistContext')]).toEqual(['', 'onSuccess'])
    expect(pageText(shown)).toContain('Browser one per run')
    expect(pageText(shown)).toContain('Shop (empty)')
    await queueWith(ada, { browserContextId: '', persistContext: 'always' })
    await queueWith(ada, { browserContextId: id.toUpperCase(), persistContext: 'never' })
    expect(await storedRuns(ada)).toEqual([
      { browser_context_id: null, persist_context: null },
      { browser_context_id: id, persist_context: 'never' },
    ])
    const plain = await ada.visitor.get('/workflows/plain')
    expect(plain.text).not.toContain('browserContextId')
    expect(pageText(plain)).not.toContain('Browser one per run')
  })

  test('has the choice of the run that is run again, also in the command for programs', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada, 'Shop')
    // Not among the newest hundred any more.
    for (let index = 0; index < 101; index++) await newContext(served, ada)
    const run = await queueWith(ada, { browserContextId: id, persistContext: 'never' })
    const again = await ada.visitor.get(`/workflows/browse?from=${run}`)
    expect([chosenOf(again, 'browserContextId'), chosenOf(again, 'persistContext')]).toEqual([id, 'never'])
    expect(pageText(again)).toContain(`queue-remote/browse?browserContextId=${id}&persistContext=never'`)
    const chosen = await ada.visitor.get(`/workflows/browse?browserContextId=${id}`)
    expect([chosenOf(chosen, 'browserContextId'), chosenOf(chosen, 'persistContext')]).toEqual([id, 'onSuccess'])
    await ada.visitor.post(`/browser-contexts/${id}/delete`)
    const gone = await ada.visitor.get(`/workflows/browse?from=${run}`)
    expect(chosenOf(gone, 'browserContextId')).toBe('')
    expect(fieldError(gone, 'browserContextId')).toContain('was deleted. Choose another one, or none.')
    expect(pageText(gone)).not.toContain('?browserContextId')
  })

  test('queues nothing with a browser context that is gone, or where none is taken', async () => {
    const ada = await signIn(served)
    const others = await newContext(served, await signIn(served))
    const key = inputValue(await ada.visitor.get('/workflows/browse'), 'key') ?? ''
    for (const id of [others.id, crypto.randomUUID(), 'none']) {
      const answer = await ada.visitor.post('/workflows/browse', { key, browserContextId: id, 'variable-url': 'kept' })
      expect(answer.status).toBe(400)
      expect(pageText(answer)).toContain('The run was not queued.')
      expect(fieldError(answer, 'browserContextId')).toContain('was deleted. Choose another one, or none.')
      expect(inputValue(answer, 'variable-url')).toBe('kept')
    }
    const wrong = await ada.visitor.post('/workflows/browse', { key, persistContext: 'toString' })
    expect([wrong.status, fieldError(wrong, 'browserContextId')]).toEqual([
      400,
      'Choose when to save the browser state.',
    ])
    const { id } = await newContext(served, ada)
    const plain = await ada.visitor.post('/workflows/plain', { key, browserContextId: id })
    expect(plain.status).toBe(400)
    expect(pageText(plain)).toContain('this workflow uses no browser, so it takes no browser context.')
    expect(await storedRuns(ada)).toEqual([])
  })
})

describe('the page of a run', () => {
  const pixel = Buffer.from('89504e470d0a1a0a', 'hex')
  const made: NewArtifact[] = [
    { name: 'page.png', mediaType: 'image/png', content: pixel },
    { name: 'page.html.txt', mediaType: 'text/plain', content: Buffer.from('<script>alert(1)</script>') },
    { name: 'invoice.pdf', mediaType: 'application/pdf', content: Buffer.alloc(2048, '%') },
  ]

  async function runWith(ada: SignedInUser, artifacts: NewArtifact[]): Promise<string> {
    const runId = await queueWith(ada, {})
    const lease = (await claim(served)).find((each) => each.runId === runId)
    for (const artifact of artifacts) {
      const data = {
        attempt: 1,
        name: artifact.name,
        mediaType: artifact.mediaType,
        sizeBytes: artifact.content.length,
      }
      const report = { at: Date.now(), type: 'artifact', data } as const
      if (!lease || !(await served.domain.queue.keepArtifact(lease, artifact, [report]))) throw new Error('Not kept.')
    }
    return runId
  }

  test('lists what it has made, with images drawn, and says so in the log', async () => {
    const ada = await signIn(served)
    const id = await runWith(ada, made)
    const { text } = await ada.visitor.get(`/runs/${id}`)
    const rows = [...text.matchAll(/<tr>\s*<td[\s\S]*?<\/tr>/g)].map(([row]) => pageText({ text: row }).trim())
    // In the order of their making, which the clock may not tell apart.
    expect(rows.map((row) => row.split(/ \d{4}-/)[0]).sort()).toEqual([
      'invoice.pdf application/pdf 2 KiB',
      'page.html.txt text/plain 25 B',
      'page.png image/png 8 B',
    ])
    expect([...text.matchAll(/<img src="\/runs\/[^"]*artifacts\/([^"?]*)/g)].map(([, name]) => name)).toEqual([
      'page.png',
    ])
    expect(pageText({ text })).toContain('Created artifact invoice.pdf, 2 KiB')
    expect(pageText(await ada.visitor.get(`/runs/${await runWith(ada, [])}`))).not.toContain('Artifacts')
  })

  test('gives each as a download that no browser takes for a page', async () => {
    const ada = await signIn(served)
    const id = await runWith(ada, made)
    for (const { name, mediaType, content } of made.slice(1)) {
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
    const stranger = await signIn(served)
    expect((await stranger.visitor.get(`/runs/${id}/artifacts/page.png`)).status).toBe(404)
    for (const name of ['none.png', '..%2f..', '%00', 'page.png%20']) {
      expect([name, (await ada.visitor.get(`/runs/${id}/artifacts/${name}`)).status]).toEqual([name, 404])
    }
  })

  test('says that its browser context could not be saved', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada, 'Shop')
    const lease = await holdContext(served, ada, id)
    const error = { name: 'ContextNotSaved', message: 'It is too large.' }
    const outcome = { kind: 'failed', reason: 'contextNotSaved', error } as const
    await served.domain.queue.complete(lease, outcome, { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 })
    const text = pageText(await ada.visitor.get(`/runs/${lease.runId}`))
    expect(text).toContain('The browser state could not be saved. The browser context is unchanged.')
    expect(text).toContain('ContextNotSaved It is too large.')
    expect(pageText(await ada.visitor.get(`/browser-contexts/${id}`))).toContain('In use by no run')
  })
})
