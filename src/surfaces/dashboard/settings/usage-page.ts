/** What the account has used: by day as a chart, by workflow as a table, and as a CSV download. */
import { noRuns, sumCounts } from '../../../domain/statistics/outcome-counts.ts'
import type { WorkflowUsage } from '../../../domain/statistics/run-usage.ts'
import { toCsv } from '../../../domain/statistics/usage-operations.ts'
import {
  addWorkflowUsage,
  dayOf,
  findRangeErrors,
  type UsageRange,
  type UsageReport,
} from '../../../domain/statistics/usage-reports.ts'
import { dayMilliseconds } from '../../../storage/purge-target.ts'
import { formatBytes, time } from '../format.ts'
import { emptyState, type Html, html, inputField, nothing, notice, table } from '../html.ts'
import { settingsPage } from '../layout.ts'
import { barWidth, height, pitch, renderPlot, roundUp } from '../overview/bar-chart.ts'
import { type PageHandler, PageNotFound, type StreamHandler } from '../page-handler.ts'

const path = '/settings/usage'
const daysDefault = 30

export const showUsage: PageHandler = async (request, { runUsage }) => {
  const { range, error } = parseRange(request.query)
  const report = error === undefined ? await runUsage.read(request.account.id, range) : undefined
  const content = html`${renderRange(range)}
    ${report ? renderReport(report, range) : notice('bad', error ?? 'These days have too many rows. Choose fewer days.')}`
  return settingsPage(request, path, content, report ? 200 : 400)
}

export const downloadUsage: StreamHandler = async ({ account, query }, { runUsage }, _request, response) => {
  const { range, error } = parseRange(query)
  const report = error === undefined ? await runUsage.read(account.id, range) : undefined
  if (!report) throw new PageNotFound(error ?? 'These days have too many rows. Choose fewer days.')
  // `type` follows `attachment`, which would guess another type from the name.
  response.attachment(`usage-${range.from}-${range.to}.csv`).type('text/csv').send(toCsv(report.workflows))
}

/** Without days, the last 30. */
function parseRange(query: URLSearchParams): { range: UsageRange; error?: string } {
  const now = Date.now()
  const from = query.get('from') || dayOf(now - (daysDefault - 1) * dayMilliseconds)
  const range = { from, to: query.get('to') || dayOf(now) }
  const invalid = Object.entries(range).find(([, day]) => !isDay(day))
  if (invalid) return { range, error: `The day in ${invalid[0]} must be a date, such as 2026-11-27.` }
  const [wrong] = findRangeErrors(range)
  return wrong ? { range, error: `The day in ${wrong.parameter} ${wrong.detail}.` } : { range }
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && dayOf(Date.parse(text)) === text
}

function renderRange({ from, to }: UsageRange): Html {
  return html`<form method="get" action="${path}" class="filters">
    ${inputField({ name: 'from', label: 'From', type: 'date', value: from })}
    ${inputField({ name: 'to', label: 'To', type: 'date', value: to })}
    <button class="secondary">Show</button>
    <a href="${path}.csv?${new URLSearchParams({ from, to }).toString()}" download>Download as CSV</a>
  </form>`
}

function renderReport({ workflows, storage, countedUntil }: UsageReport, range: UsageRange): Html {
  const counted = html`<p class="muted">Days are in UTC. Runs that finished until ${time(countedUntil, 'exact')} are counted.</p>`
  if (workflows.length === 0 && storage.length === 0)
    return html`${emptyState('No usage', 'No run finished on these days.')} ${counted}`
  return html`${renderDays(workflows, range)} ${workflows.length > 0 ? renderWorkflows(workflows) : nothing}
    ${storage.length > 0 ? renderStorage(storage) : nothing} ${counted}`
}

function renderDays(workflows: readonly WorkflowUsage[], { from, to }: UsageRange): Html {
  const byDay = new Map<string, number>()
  for (const { day, executedMilliseconds } of workflows)
    byDay.set(day, (byDay.get(day) ?? 0) + executedMilliseconds / 60_000)
  const days: string[] = []
  for (let at = Date.parse(from); at <= Date.parse(to); at += dayMilliseconds) days.push(dayOf(at))
  const top = roundUp(Math.max(1, Math.ceil(Math.max(...days.map((day) => byDay.get(day) ?? 0)))))
  const bars = days.map((day, index) => {
    const minutes = byDay.get(day) ?? 0
    const size = minutes === 0 ? 0 : Math.max(2, (minutes / top) * (height - 6))
    const x = index * pitch + (pitch - barWidth) / 2
    return html`<g><title>${day}: ${formatNumber(minutes)} minutes</title><rect class="other" x="${x}"
      y="${(height + 2 - size).toFixed(1)}" width="${barWidth}" height="${size.toFixed(1)}" rx="2" /></g>`
  })
  const step = Math.ceil(days.length / 4)
  const axis = days.map((day, index) => {
    if (index === days.length - 1 && days.length > 1) return html`<span>${day.slice(5)}</span>`
    return index % step === 0 && index < days.length - step ? html`<span>${day.slice(5)}</span>` : html`<span></span>`
  })
  const rows = days.filter((day) => byDay.has(day)).map((day) => [day, formatNumber(byDay.get(day) ?? 0)])
  return html`<figure class="card chart">
    <figcaption><h2>Minutes of execution</h2></figcaption>
    ${renderPlot(top, bars, axis)}
    <details>
      <summary>Show as table</summary>
      ${table(['Day', { number: 'Minutes' }], rows, 'Minutes of execution by day')}
    </details>
  </figure>`
}

const columns = [
  'Workflow',
  { number: 'Runs' },
  { number: 'Not succeeded' },
  { number: 'Attempts' },
  { number: 'Execution' },
  { number: 'Browser' },
  { number: 'Artifacts' },
]

function renderWorkflows(workflows: readonly WorkflowUsage[]): Html {
  const sums = new Map<string, Omit<WorkflowUsage, 'day' | 'workflowId'>>()
  const newSum = () => {
    return { counts: noRuns(), attempts: 0, executedMilliseconds: 0, browserMilliseconds: 0, artifactBytes: 0 }
  }
  const total = newSum()
  for (const usage of workflows) {
    const sum = sums.get(usage.workflowId) ?? newSum()
    sums.set(usage.workflowId, sum)
    addWorkflowUsage(sum, usage)
    addWorkflowUsage(total, usage)
  }
  const longestFirst = [...sums].sort(([, a], [, b]) => b.executedMilliseconds - a.executedMilliseconds)
  const rows = longestFirst.map(([id, sum]) => renderSum(html`<a href="/workflows/${id}">${id}</a>`, sum))
  if (rows.length > 1) rows.push(renderSum(html`<strong>All workflows</strong>`, total))
  return html`<h2>Workflows</h2>${table(columns, rows, 'Usage by workflow')}`
}

function renderSum(name: Html, sum: Omit<WorkflowUsage, 'day' | 'workflowId'>): (Html | string)[] {
  const runs = sumCounts(sum.counts)
  return [
    name,
    runs.toLocaleString('en'),
    (runs - sum.counts.succeeded).toLocaleString('en'),
    sum.attempts.toLocaleString('en'),
    `${formatNumber(sum.executedMilliseconds / 60_000)} min`,
    `${formatNumber(sum.browserMilliseconds / 60_000)} min`,
    formatBytes(sum.artifactBytes),
  ]
}

function renderStorage(storage: UsageReport['storage']): Html {
  const rows = storage.toReversed().map(({ day, bytes }) => [day, formatBytes(bytes)])
  return html`<details class="card"><summary>Storage by day</summary>
    ${table(['Day', { number: 'Most stored' }], rows, 'Storage by day')}</details>`
}

function formatNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 })
}
