/** What the list of runs looks like. */
import type { Run } from '../../../domain/runs/run.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { copyable, emptyState, heading, labelledField, moment, selectField, table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { queueCommand } from '../workflows/curl.ts'
import { exampleOf } from '../workflows/example.ts'
import { isAny, type RunListFilter, searchOf, statusChoices } from './filter.ts'
import type { QueuerOf } from './queuers.ts'
import { endedBecause, runDuration, shortId, statusBadge, waitsBriefly } from './run-labels.ts'

interface RunList {
  runs: Run[]
  nextCursor: string | null
  isFirstPage: boolean
  filter: RunListFilter
  /** Those that are installed, sorted by id. */
  workflows: Workflow[]
  queuerOf: QueuerOf
  executionUrl: string
}

export function listView(list: RunList): Html {
  const { runs, filter, isFirstPage, workflows } = list
  const hasNone = runs.length === 0 && isFirstPage && isAny(filter)
  const actions = html`<a class="button" href="/workflows">Run a workflow</a>`
  return html`${heading('Runs', { lead: 'What was queued, newest first.', ...(!hasNone && { actions }) })}
    ${hasNone ? nothing : filterForm(filter, workflows)}
    <div id="runs" data-live="/runs/changes">
      ${hasNone ? noRuns(list) : runs.length === 0 ? nothingFits() : runTable(list)} ${pageLinks(list)}
    </div>`
}

function filterForm(filter: RunListFilter, workflows: Workflow[]): Html {
  const installed = workflows.map(({ id, title }) => ({ value: id, title }))
  const { workflow } = filter
  const isGone = workflow !== '' && !workflows.some(({ id }) => id === workflow)
  const options = [{ value: '', title: 'any' }, ...installed, ...(isGone ? [{ value: workflow, title: workflow }] : [])]
  const day = (name: 'from' | 'until', label: string) =>
    labelledField({ name, label }, (given) => html`<input type="date" ${given} value="${filter[name]}" />`)
  return html`<form method="get" action="/runs" class="filters">
    ${selectField({ name: 'workflow', label: 'Workflow', value: workflow, options })}
    ${selectField({ name: 'status', label: 'Status', value: filter.status, options: statusChoices })}
    ${day('from', 'From (day in UTC)')} ${day('until', 'Until')}
    <button class="secondary">Filter</button>
    ${isAny(filter) ? nothing : html`<a href="/runs">Show all</a>`}
  </form>`
}

function runTable({ runs, workflows, queuerOf }: RunList): Html {
  const titles = new Map(workflows.map(({ id, title }) => [id, title]))
  const rows = runs.map((run) => [
    html`<div class="stack">${statusBadge(run)} ${noteOf(run)}</div>`,
    html`<div class="stack">
      <a href="/runs/${run.id}"><strong>${titles.get(run.workflowId) ?? run.workflowId}</strong></a>
      <small>${run.workflowId} · <code>${shortId(run.id)}</code></small>
    </div>`,
    moment(run.createdAt),
    html`<span>${runDuration(run)}</span>`,
    queuerOf(run),
  ])
  return table(['Status', 'Run', 'Queued', 'Duration', 'Queued by'], rows, 'Runs, newest first')
}

/** What goes with the status: how far it is, what it waits for, why it ended. */
function noteOf(run: Run): Html | '' {
  const { status, progress } = run
  if (status === 'queued') return html`<small>${waitsBriefly(run)}</small>`
  if (status === 'succeeded' || status === 'cancelled') return nothing
  if (status !== 'running') return html`<small>${run.error?.message.slice(0, 90) ?? endedBecause(run)}</small>`
  if (!progress) return nothing
  const percent = Math.round(progress.percent)
  return html`<small><progress value="${percent}" max="100" aria-label="Progress"></progress> ${percent} %</small>`
}

function pageLinks({ nextCursor, isFirstPage, filter }: RunList): Html {
  const newest = html`<a href="/runs?${searchOf(filter)}">← Newest runs</a>`
  const older = nextCursor && html`<a href="/runs?${searchOf(filter, { cursor: nextCursor })}">Older runs →</a>`
  return html`<p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>`
}

function nothingFits(): Html {
  return emptyState('Nothing fits', html`<p>No run fits this filter. <a href="/runs">Show all runs</a></p>`)
}

function noRuns({ workflows, executionUrl }: RunList): Html {
  const [workflow] = workflows
  if (!workflow) {
    return emptyState(
      'No run yet',
      html`<p>There is no workflow to run. <a href="/workflows">See how to add one</a></p>`,
    )
  }
  const command = queueCommand(executionUrl, workflow.id, exampleOf(workflow.variables))
  return emptyState(
    'No run yet',
    html`<p>Choose a workflow and run it, or let a program queue one with an <a href="/api-keys">API key</a>.</p>
      <p><a class="button" href="/workflows">Choose a workflow</a></p>
      ${copyable('first-command', command, { label: 'Copy command' })}`,
  )
}
