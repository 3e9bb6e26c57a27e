/** What the browser of a run's failed attempts did: screenshots, and links to the trace and the summary. */
import type { Artifact } from '../../../domain/runs/artifacts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { formatBytes } from '../format.ts'
import { type Html, html, nothing } from '../html.ts'
import { traceViewerPath } from '../trace-viewer/trace-viewer.ts'
import { artifactPath, renderPreviews } from './run-artifacts.ts'

export function renderEvidence({ id, artifacts }: Pick<Run, 'id' | 'artifacts'>): Html | '' {
  const evidence = artifacts.filter(({ kind }) => kind === 'evidence')
  const attempts = [...new Set(evidence.map(({ attempt }) => attempt))].sort((a, b) => b - a)
  if (attempts.length === 0) return nothing
  return html`${attempts.map((attempt) => {
    return renderAttempt(
      id,
      attempt,
      evidence.filter((each) => each.attempt === attempt),
    )
  })}`
}

function renderAttempt(id: string, attempt: number, evidence: readonly Artifact[]): Html {
  const trace = evidence.find(({ mediaType }) => mediaType === 'application/zip')
  const summary = evidence.find(({ mediaType }) => mediaType === 'application/json')
  const open = trace && html`<a class="button secondary" href="${traceViewerPath(id, trace.name)}">Open trace</a>`
  const files = [summary, trace].filter((file) => file !== undefined)
  const downloads = files.map(
    ({ name, sizeBytes }) =>
      html`<a href="${artifactPath(id, name)}" download>${name}</a> (${formatBytes(sizeBytes)}) `,
  )
  return html`<section class="card evidence">
    <h2>Browser in attempt ${attempt}</h2>
    ${renderPreviews(id, evidence)}
    <p>${open ?? nothing}</p>
    <p class="muted">Download: ${downloads}</p>
  </section>`
}
