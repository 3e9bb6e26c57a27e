/** The table of workflows in the overview: how many runs, how many failed, how long they took. */
import { outcomes } from '../../../domain/runs/run-rollups.ts'
import { sumCounts, type WorkflowStatistics } from '../../../domain/runs/run-statistics.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { formatDuration, time } from '../format.ts'
import { type Html, html, table } from '../html.ts'
import { type RunFilter, toRunQuery } from '../runs/run-filter.ts'
import { groupOutcomes, renderSparkline } from './run-chart.ts'

const columns = ['Workflow', 'Runs', 'Failure rate', 'p50', 'p95', 'Last run', 'History']

/** @param period the list's filter for the range. */
export function renderWorkflowTable(
  statistics: WorkflowStatistics[],
  workflows: Workflow[],
  period: Partial<RunFilter>,
): Html {
  const titles = new Map(workflows.map(({ id, title }) => [id, title]))
  const rows = statistics.map(({ workflowId, counts, p50, p95, lastFinishedAt, history }) => {
    const { good, bad } = groupOutcomes(counts)
    const listed = (filter: Partial<RunFilter>) => `/runs?${toRunQuery({ ...period, workflow: workflowId, ...filter })}`
    const rate = good + bad === 0 ? '–' : `${((100 * bad) / (good + bad)).toFixed(1)}%`
    return [
      html`<a href="${listed({ statuses: [...outcomes] })}">${titles.get(workflowId) ?? workflowId}</a>`,
      html`<span class="number">${sumCounts(counts).toLocaleString('en')}</span>`,
      bad === 0
        ? html`<span class="number">${rate}</span>`
        : html`<a class="number danger" href="${listed({ statuses: ['failed', 'timedOut'] })}">${rate}</a>`,
      html`<span class="number">${p50 === null ? '–' : formatDuration(p50)}</span>`,
      html`<span class="number">${p95 === null ? '–' : formatDuration(p95)}</span>`,
      time(lastFinishedAt),
      renderSparkline(history),
    ]
  })
  return html`<div class="workflow-statistics">${table(columns, rows, 'Finished runs by workflow')}</div>`
}
