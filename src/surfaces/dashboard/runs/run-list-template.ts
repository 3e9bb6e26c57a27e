/** Template of the list of runs. */
import type { Run } from '../../../domain/runs/run.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { time } from '../format.ts'
import {
  copyable,
  emptyState,
  type Html,
  heading,
  html,
  labelledField,
  nothing,
  notice,
  selectField,
  table,
} from '../html.ts'
import { queueCommand } from '../workflows/curl-commands.ts'
import { isEmptyFilter, type RunFilter, statusFilterOptions, toRunQuery } from './run-filter.ts'
import {
  describeEnd,
  describeWaitBriefly,
  type QueuerLabel,
  renderRunDuration,
  runBadge,
  shortId,
} from './run-labels.ts'

interface RunList {
  runs: Run[]
  nextCursor: string | null
  isFirstPage: boolean
  done: string
  filter: RunFilter
  /** Installed workflows, sorted by id. */
  workflows: Workflow[]
  queuerLabel: QueuerLabel
  executionUrl: string
}

export function renderRunList(list: RunList): Html {
  const { runs, filter, isFirstPage, workflows, nextCursor, done } = list
  const isEmpty = runs.length === 0 && isFirstPage && isEmptyFilter(filter)
  const actions = html`<a class="button" href="/workflows">Run a workflow</a>`
  const newest = html`<a href="/runs?${toRunQuery(filter)}">← Newest runs</a>`
  const older = nextCursor && html`<a href="/runs?${toRunQuery(filter, nextCursor)}">Older runs →</a>`
  return html`${heading('Runs', isEmpty ? {} : { actions })}
    ${done === 'deleted' ? notice('good', 'Run deleted. Its data was erased.') : nothing}
    ${isEmpty ? nothing : renderFilter(filter, workflows)}
    <div id="runs" data-live="/runs/changes">
      ${isEmpty ? renderNoRuns(list) : runs.length === 0 ? noResults : renderRunTable(list)}
      <p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>
    </div>`
}

const noResults = emptyState('No results', html`<p>No runs match these filters. <a href="/runs">Clear filters</a></p>`)

function renderFilter(filter: RunFilter, workflows: Workflow[]): Html {
  const { workflow } = filter
  const options = [{ value: '', title: 'All workflows' }, ...workflows.map(({ id, title }) => ({ value: id, title }))]
  // A workflow that is no longer installed can still be filtered for.
  if (!options.some(({ value }) => value === workflow)) options.push({ value: workflow, title: workflow })
  const day = (name: 'from' | 'until', label: string) =>
    labelledField({ name, label }, (common) => html`<input type="date" ${common} value="${filter[name]}" />`)
  return html`<form method="get" action="/runs" class="filters">
    ${selectField({ name: 'workflow', label: 'Workflow', value: workflow, options })}
    ${selectField({ name: 'status', label: 'Status', value: filter.status, options: statusFilterOptions })}
    ${day('from', 'From (UTC)')} ${day('until', 'To (UTC)')}
    <button class="secondary">Filter</button>
    ${isEmptyFilter(filter) ? nothing : html`<a href="/runs">Clear filters</a>`}
  </form>`
}

function renderRunTable({ runs, workflows, queuerLabel }: RunList): Html {
  const titles = new Map(workflows.map(({ id, title }) => [id, title]))
  const rows = runs.map((run) => [
    runBadge(run),
    html`<div class="run-title">
      <span><a href="/runs/${run.id}"><strong>${titles.get(run.workflowId) ?? run.workflowId}</strong></a>
        <code>${shortId(run.id)}</code></span>
      ${renderStatusNote(run)}
    </div>`,
    time(run.createdAt),
    html`<span>${renderRunDuration(run)}</span>`,
    queuerLabel(run),
  ])
  return html`<div class="run-list">${table(['Status', 'Workflow', 'Queued', 'Duration', 'Queued by'], rows, 'Runs, newest first')}</div>`
}

const errorLengthMax = 90

function renderStatusNote(run: Run): Html | '' {
  const { status, progress, error } = run
  if (status === 'queued') return html`<small>${describeWaitBriefly(run)}</small>`
  if (status === 'succeeded' || status === 'cancelled') return nothing
  if (status !== 'running') return html`<small>${error?.message.slice(0, errorLengthMax) ?? describeEnd(run)}</small>`
  if (!progress) return nothing
  const percent = Math.round(progress.percent)
  return html`<small><progress value="${percent}" max="100" aria-label="Progress"></progress> ${percent}%</small>`
}

function renderNoRuns({ workflows, executionUrl }: RunList): Html {
  const [workflow] = workflows
  if (!workflow) {
    return emptyState('No runs yet', html`<p>No workflows are deployed. <a href="/workflows">Add a workflow</a></p>`)
  }
  const command = queueCommand(executionUrl, workflow.id, exampleVariables(workflow.variables))
  return emptyState(
    'No runs yet',
    html`<p>Run a workflow from its page, or queue a run from your program with an <a href="/api-keys">API key</a>.</p>
      <p><a class="button" href="/workflows">Choose a workflow</a></p>
      ${copyable('first-command', command, { label: 'Copy command' })}`,
  )
}
