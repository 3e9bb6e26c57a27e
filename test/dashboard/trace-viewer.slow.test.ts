/** The trace viewer in a real browser: it shows a run's trace, offline, to its account alone, confined to its own path. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import type { NewArtifact } from '../../src/domain/runs/artifact.ts'

import { traceViewerPath } from '../../src/surfaces/dashboard/trace-viewer/trace-viewer.ts'
import { buildEvidence } from '../../src/worker/evidence/build-evidence.ts'
import { EvidenceRecorder, type RawEvidence } from '../../src/worker/evidence/recorder.ts'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import type { Test } from '../support/domain.ts'
import { claim, queueFromForm, startBrowserDashboard } from './browser-context-helpers.ts'

let dashboard: DashboardService
let browser: Browser

beforeAll(async () => {
  ;[dashboard, browser] = await Promise.all([startBrowserDashboard(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await dashboard.stop()
})

/** A page with a script, which must not run again when its snapshot is shown. */
const markup = `<h1>A shop</h1><button onclick="fetch('/runs')">Buy</button>
  <form method="post" action="/profile/sign-out-everywhere"><button>Leave</button></form>
  <script>document.body.dataset.ran = 'yes'</script>`

/** What an executor sends of a page that it has recorded. */
async function recordEvidence(context: Test): Promise<NewArtifact[]> {
  const page = await browser.newPage(context)
  const recorder = await EvidenceRecorder.start(page.context(), 'calls')
  await page.setContent(markup)
  await page.getByRole('button', { name: 'Buy' }).focus()
  await page.evaluate(() => fetch('http://127.0.0.1:9/missing').catch(() => {}))
  await page.evaluate("console.error('sold out')")
  const raw = (await recorder?.collect()) as RawEvidence
  await recorder?.discard()
  return [...buildEvidence(raw, { variables: [], restored: undefined }, 1)]
}

/** A failed run with evidence. */
async function failRun(context: Test, user: SignedInUser): Promise<string> {
  const runId = await queueFromForm(user, {})
  const lease = (await claim(dashboard)).find((each) => each.runId === runId) as Claim
  for (const artifact of await recordEvidence(context)) {
    await dashboard.domain.queue.keepArtifact(lease, { ...artifact, kind: 'evidence' }, [])
  }
  const message = 'locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for the button'
  const error = { name: 'TimeoutError', message, step: 'buy' }
  const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
  await dashboard.domain.queue.complete(lease, { kind: 'failed', reason: 'workflowFailed', error }, retry)
  return runId
}

async function open(context: Test, { visitor }: SignedInUser, options = {}) {
  const page = await browser.newPage(context, { baseUrl: dashboard.url, ...options })
  const cookies = [...visitor.cookies].map(([name, value]) => ({ name, value, url: dashboard.url }))
  await page.context().addCookies(cookies)
  return page
}

test('a failed run shows its screenshots, and its trace opens in a viewer that reaches nothing else', async (context) => {
  const ada = await signIn(dashboard)
  const runId = await failRun(context, ada)
  const page = await open(context, ada)
  const requests: string[] = []
  page.context().on('request', (request) => requests.push(request.url()))
  await page.goto(`/runs/${runId}`)
  const screenshot = page.getByRole('img', { name: 'attempt-1-page-1.jpg' })
  // The first screen has the headline, the step and the screenshot; the log of calls is there once, folded.
  await page.getByRole('alert').getByText('TimeoutError locator.click: Timeout 30000ms exceeded.').waitFor()
  await expect.poll(async () => ((await screenshot.boundingBox()) ?? { y: 9999 }).y).toBeLessThan(500)
  expect(await page.getByRole('alert').getByText('In step buy').count()).toBe(1)
  expect(await page.getByText('Call log', { exact: true }).count()).toBe(1)
  expect(await page.getByText('waiting for the button').isVisible()).toBe(false)
  expect(await page.getByRole('group', { name: 'Console' }).textContent()).toMatch(/error\s+sold out/)
  const requested = page.getByRole('table', { name: 'Failed requests' })
  expect(await requested.getByRole('row').last().textContent()).toMatch(
    /GET http:\/\/127\.0\.0\.1:9\/missing.*net::ERR/s,
  )
  await page.getByRole('link', { name: 'Open trace' }).click()
  // It opens with the last action, which has the DOM of the end; the others say why they have none.
  const snapshot = page.frameLocator('iframe.snapshot-visible')
  await snapshot.getByRole('heading', { name: 'A shop' }).waitFor()
  await page.getByRole('treeitem', { name: 'Focus' }).click()
  await snapshot.getByText('No DOM was recorded of this action.').waitFor()
  // The recorder's own calls are no actions of the author.
  const actions = await page.getByRole('treeitem').allTextContents()
  expect(actions.filter((action) => /Screenshot|sessionValues|title|storage/i.test(action))).toEqual([])
  await page.getByRole('tab', { name: 'Network' }).click()
  await page.getByText('missing', { exact: true }).first().waitFor()
  // The viewer's own script has a nonce.
  expect(await snapshot.locator('script:not([nonce]), [onclick]').count()).toBe(0)
  const elsewhere = requests.filter((url) => !url.startsWith(dashboard.url) && !/^(data|blob):/.test(url))
  expect(elsewhere).toEqual([])
  const errors = await browserErrors(page)
  // Chromium warns of the sandbox that the viewer gives its frames in addition.
  expect(errors.filter((each) => !each.includes('can escape its sandboxing'))).toEqual([])
  // What a page of a trace could do if it ran scripts in spite of the policy.
  const refused = await page.evaluate(async () => {
    const read = (path: string) =>
      fetch(path).then(
        (response) => response.status,
        () => 'refused',
      )
    return Promise.all([read('/runs'), read('/assets/x'), read('ping')])
  })
  expect(refused).toEqual(['refused', 'refused', 200])
})

test("a traced page is no page of the dashboard's origin, and submits no form wherever it is framed", async (context) => {
  const ada = await signIn(dashboard)
  const page = await open(context, ada)
  const requests: string[] = []
  page.context().on('request', (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`))
  await page.goto(traceViewerPath(await failRun(context, ada), 'attempt-1-trace.zip'))
  const shown = page.locator('iframe.snapshot-visible')
  await shown.contentFrame().getByRole('button', { name: 'Leave' }).waitFor()
  const address = await shown.evaluate((frame: HTMLIFrameElement) => frame.contentWindow?.location.href ?? '')
  expect(new URL(address).pathname).toMatch(/^\/trace-viewer\/snapshot\//)

  const tab = await page.context().newPage()
  expect((await tab.goto(address))?.status()).toBe(404)
  expect(await tab.getByRole('button').count()).toBe(0)

  // The viewer's frames forbid forms; this frame leaves that to the policy of the snapshot.
  await page.evaluate((src) => {
    const frame = Object.assign(document.createElement('iframe'), { src, name: 'plain' })
    document.body.append(Object.assign(frame, { style: 'position: fixed; z-index: 1000; inset: 0' }))
  }, address)
  const plain = page.frameLocator('iframe[name=plain]')
  await plain.getByRole('button', { name: 'Leave' }).click()
  // Chromium reports the refusal after the click.
  await expect.poll(() => browserErrors(page)).toContainEqual(expect.stringMatching(/form/i))
  expect(requests.filter((each) => each.startsWith('POST'))).toEqual([])
  expect((await ada.visitor.get('/runs')).status).toBe(200)
})

test('a trace is not found by users of another account, nor without evidence', async (context) => {
  const ada = await signIn(dashboard)
  const runId = await failRun(context, ada)
  const path = `/trace-viewer/runs/${runId}/attempt-1-trace.zip`
  expect((await ada.visitor.get(path)).status).toBe(200)
  expect((await ada.visitor.get(path.replace('trace.zip', 'browser.json'))).status).toBe(404)
  expect((await (await signIn(dashboard)).visitor.get(path)).status).toBe(404)
})
