/** What the browser of a failed attempt did: screenshots, the console, failed requests, and links to the trace. */

import type { Artifact } from '../../../domain/runs/artifact.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { readSized } from '../../../domain/sized.ts'
import { isObject } from '../../../domain/workflows/example-values.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatBytes } from '../format.ts'
import { type Html, html, nothing, table } from '../html.ts'
import type { PageRequest } from '../page-handler.ts'
import { traceViewerPath } from '../trace-viewer/trace-viewer.ts'
import { artifactPath, renderPreviews } from './run-artifacts.ts'

/** What the pages of the last attempt with evidence reported. */
export interface BrowserReport {
  attempt: number
  console: { level: string; text: string }[]
  failedRequests: { method: string; url: string; outcome: string }[]
}

/** Of each kind; the file has the others. */
const entriesShown = 20

const evidenceOf = ({ artifacts }: Pick<Run, 'artifacts'>) => artifacts.filter(({ kind }) => kind === 'evidence')
const isSummary = ({ mediaType }: Artifact) => mediaType === 'application/json'

/** Reads the file that the last attempt left. The workflow's process wrote it, so its content may be anything. */
export async function readBrowserReport(
  run: Run,
  { account, reserve }: PageRequest,
  { artifacts }: Dependencies,
): Promise<BrowserReport | undefined> {
  const evidence = evidenceOf(run)
  const attempt = Math.max(...evidence.map((each) => each.attempt))
  const summary = evidence.find((each) => each.attempt === attempt && isSummary(each))
  const found = summary && (await artifacts.find(account.id, run.id, summary.name))
  const file = found && (await readSized(reserve, found))
  if (!file) return undefined
  try {
    const parsed: unknown = JSON.parse(Buffer.from(file.content).toString())
    const listed = (name: string) => {
      const entries: unknown = isObject(parsed) ? parsed[name] : undefined
      return Array.isArray(entries) ? entries.filter(isObject) : []
    }
    return {
      attempt,
      console: listed('console').map(({ level, text }) => ({ level: String(level), text: String(text) })),
      failedRequests: listed('failedRequests').map(({ method, url, status, error }) => {
        return { method: String(method), url: String(url), outcome: String(error ?? status) }
      }),
    }
  } catch {
    return undefined
  }
}

/** The last attempt first. */
export function renderEvidence(run: Pick<Run, 'id' | 'artifacts'>, report: BrowserReport | undefined): Html | '' {
  const attempts = [...Map.groupBy(evidenceOf(run), ({ attempt }) => attempt)].sort(([a], [b]) => b - a)
  if (attempts.length === 0) return nothing
  return html`${attempts.map(([attempt, evidence]) => {
    return renderAttempt(run.id, attempt, evidence, report?.attempt === attempt ? report : undefined)
  })}`
}

function renderAttempt(
  id: string,
  attempt: number,
  evidence: readonly Artifact[],
  report: BrowserReport | undefined,
): Html {
  const trace = evidence.find(({ mediaType }) => mediaType === 'application/zip')
  const open = trace && html`<a class="button secondary" href="${traceViewerPath(id, trace.name)}">Open trace</a>`
  const files = [evidence.find(isSummary), trace].filter((file) => file !== undefined)
  const downloads = files.map(
    ({ name, sizeBytes }) =>
      html`<a href="${artifactPath(id, name)}" download>${name}</a> (${formatBytes(sizeBytes)}) `,
  )
  return html`<section class="card evidence">
    <div class="form-head"><h2>Browser in attempt ${attempt}</h2>${open ?? nothing}</div>
    ${renderPreviews(id, evidence)} ${report ? renderReport(report) : nothing}
    <p class="muted">Download: ${downloads}</p>
    <p class="muted">Recorded by the process that runs the workflow, whose code can change these files.</p>
  </section>`
}

function renderReport({ console: messages, failedRequests }: BrowserReport): Html {
  const lines = messages.slice(-entriesShown).map(
    ({ level, text }) => html`<li class="${level === 'warning' ? 'warn' : level === 'uncaught' ? 'error' : level}">
      <strong>${level}</strong> <span>${text}</span></li>`,
  )
  const requests = failedRequests
    .slice(-entriesShown)
    .map(({ method, url, outcome }) => [html`<code>${method}</code> <span class="address">${url}</span>`, outcome])
  return html`<h3>Console${countShown(messages.length)}</h3>
    ${lines.length === 0 ? html`<p class="muted">No messages.</p>` : html`<div class="log" tabindex="0" role="group" aria-label="Console"><ol>${lines}</ol></div>`}
    <h3>Failed requests${countShown(failedRequests.length)}</h3>
    ${requests.length === 0 ? html`<p class="muted">None.</p>` : table(['Request', 'Outcome'], requests, 'Failed requests')}`
}

function countShown(count: number): string {
  return count > entriesShown ? `, the last ${entriesShown} of ${count}` : ''
}
