/** Evidence of a browser that did not run, in the files that the service stores. There is no trace. */
import type { NewArtifact } from '../domain/runs/artifact.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Evidence } from './scenarios-schema.ts'

/** A grey picture of 64 × 36 pixels. */
const picture =
  '/9j/2wBDAAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAj/wAALCAAkAEABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAf/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oACAEBAAA/ALAAAAAAAAAAAAAA/9k='

/** The evidence that the workflow's policy keeps of an attempt. */
export function evidenceOf(
  { usesBrowser, evidence: policy, title: workflowTitle }: Workflow,
  attempt: number,
  hasFailed: boolean,
  { url = 'https://example.com/', title = workflowTitle, console = [], failedRequests = [] }: Evidence = {},
): NewArtifact[] {
  const isKept = policy === 'always' || (policy === 'onFailure' && hasFailed)
  if (!usesBrowser || !isKept) return []
  const screenshot = `attempt-${attempt}-page-1.jpg`
  const summary = {
    pages: [{ url, title, screenshot }],
    console: console.map((message) => ({ ...message, url })),
    failedRequests: failedRequests.map(({ status = null, error = null, ...request }) => ({
      ...request,
      status,
      error,
    })),
    trace: null,
  }
  return [
    { name: screenshot, kind: 'evidence', mediaType: 'image/jpeg', content: Buffer.from(picture, 'base64') },
    {
      ...{ name: `attempt-${attempt}-browser.json`, kind: 'evidence', mediaType: 'application/json' },
      content: Buffer.from(`${JSON.stringify(summary, null, 2)}\n`),
    },
  ]
}
