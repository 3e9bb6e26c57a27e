/** Template of the list of runs. */
import type { BulkAction } from '../../../domain/bulk-actions/bulk-action.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { copyable, emptyState, type Html, heading, html, nothing, notice } from '../html.ts'
import { queueCommand } from '../workflows/curl-commands.ts'
import { renderBulkLinks, renderBulkSummary } from './bulk-action-templates.ts'
import { isEmptyFilter, type RunFilter, toRunQuery } from './run-filter.ts'
import { renderFilters } from './run-filter-template.ts'
import type { QueuerLabel } from './run-labels.ts'
import { renderRunTable } from './run-table.ts'

interface RunList {
  runs: Run[]
  nextCursor: string | null
  isFirstPage: boolean
  done: string
  /** Those that are not finished. */
  bulkActions: BulkAction[]
  filter: RunFilter
  /** Installed workflows, sorted by id. */
  workflows: Workflow[]
  queuerLabel: QueuerLabel
  executionUrl: string
}

export function renderRunList(list: RunList): Html {
  const { runs, filter, isFirstPage, workflows, nextCursor, done, bulkActions } = list
  const isEmpty = runs.length === 0 && isFirstPage && isEmptyFilter(filter)
  const bulkLinks = runs.length > 0 || !isFirstPage ? renderBulkLinks(filter) : nothing
  const actions = html`${bulkLinks}<a class="button" href="/workflows">Run a workflow</a>`
  const newest = html`<a href="/runs?${toRunQuery(filter)}">← Newest runs</a>`
  const older = nextCursor && html`<a href="/runs?${toRunQuery(filter, nextCursor)}">Older runs →</a>`
  return html`${heading('Runs', isEmpty ? {} : { actions })}
    ${done === 'deleted' ? notice('good', 'Run deleted. Its data was erased.') : nothing}
    ${isEmpty ? nothing : renderFilters(filter, workflows)}
    <div id="runs" data-live="/runs/changes">
      ${bulkActions.map((action) => notice('quiet', renderBulkSummary(action)))}
      ${isEmpty ? renderNoRuns(list) : runs.length === 0 ? noResults : renderRunTable(list)}
      <p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>
    </div>`
}

const noResults = emptyState('No results', html`<p>No runs match these filters. <a href="/runs">Clear filters</a></p>`)

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
