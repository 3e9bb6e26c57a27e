/** The table of runs, with two lines per run. */
import type { Run } from '../../../domain/runs/run.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { time } from '../format.ts'
import { type Html, html, nothing, table } from '../html.ts'
import {
  describeEnd,
  describeWaitBriefly,
  type QueuerLabel,
  renderRunDuration,
  runBadge,
  shortId,
} from './run-labels.ts'

interface RunTable {
  runs: Run[]
  workflows: Workflow[]
  queuerLabel: QueuerLabel
}

export function renderRunTable({ runs, workflows, queuerLabel }: RunTable): Html {
  const titles = new Map(workflows.map(({ id, title }) => [id, title]))
  const rows = runs.map((run) => [
    runBadge(run),
    html`<div class="run-title">
      <a href="/runs/${run.id}">${titles.get(run.workflowId) ?? run.workflowId}</a>
      <small><code>${shortId(run.id)}</code> ${describeRow(run)}</small>
    </div>`,
    time(run.createdAt, 'short'),
    html`<span>${renderRunDuration(run)}</span>`,
    queuerLabel(run),
  ])
  return html`<div class="run-list">${table(['Status', 'Workflow', 'Queued', { number: 'Duration' }, 'Queued by'], rows, 'Runs, newest first')}</div>`
}

const errorLengthMax = 120

/** The second line of a row: why the run waits or failed, or its progress. */
function describeRow(run: Run): Html | string {
  const { status, waitingFor, progress, error } = run
  if (waitingFor !== null) return describeWaitBriefly(run) ?? nothing
  if (status === 'succeeded' || status === 'cancelled') return nothing
  if (status !== 'running') return error?.message.slice(0, errorLengthMax) ?? describeEnd(run) ?? nothing
  if (!progress) return nothing
  const percent = Math.round(progress.percent)
  return html`<progress value="${percent}" max="100" aria-label="Progress"></progress> ${percent}%`
}
