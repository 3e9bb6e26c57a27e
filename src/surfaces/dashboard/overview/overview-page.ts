/** The overview: what is queued and running now, the workers, and the runs of a range of time by workflow. */

import { hostname } from 'node:os'
import { shellCommand } from '../../../config/command-line.ts'
import type { NeededSignIn } from '../../../domain/browser-contexts/sign-ins.ts'
import type { LiveWorker } from '../../../domain/queue/workers.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { type OutcomeCounts, outcomes, sumCounts } from '../../../domain/statistics/outcome-counts.ts'
import {
  type CurrentRuns,
  type RangeName,
  type RunHistory,
  ranges,
  type TimeBucket,
  type WorkflowStatistics,
} from '../../../domain/statistics/run-statistics.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { renderNeeding } from '../browser-contexts/sign-in-state.ts'
import { formatBytes, formatDuration, formatLocalTime, recentTime, time } from '../format.ts'
import { emptyState, type Html, heading, html, nothing, notice, table } from '../html.ts'
import type { PageHandler } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { type RunFilter, toRunQuery } from '../runs/run-filter.ts'
import { type QueuerLabel, readQueuerLabels } from '../runs/run-labels.ts'
import { renderRunTable } from '../runs/run-table.ts'
import { barWidth, height, pitch, renderLine, renderPlot, roundUp } from './bar-chart.ts'

const runsShown = 5

export const showOverview: PageHandler = async (request, deps) => {
  const { account, query, user } = request
  const { statistics, workers, runs, apiKeys, workflows, usage, signIns } = deps
  const name = query.get('range') ?? ''
  const range = Object.hasOwn(ranges, name) ? (name as RangeName) : '24h'
  const [current, history, alive, last, keys, needing] = await Promise.all([
    statistics.current(account.id),
    statistics.history(account.id, range),
    workers.alive(account.id),
    runs.list(account.id, { limit: runsShown }),
    apiKeys.list(account.id),
    signIns.needed(account.id),
  ])
  const body = renderOverview({
    current,
    range,
    history,
    workers: alive,
    needing,
    lastRuns: last?.runs ?? [],
    queuerLabel: await readQueuerLabels(deps, account.id),
    offersKey: keys.length === 0 && may(user, 'GET /api-keys/new'),
    workflows: workflows.current(account.id).list(),
    storage: { bytes: usage.bytesOf(account.id), quotaMegabytes: usage.quotaMegabytes },
  })
  return { title: 'Overview', tab: 'overview', body }
}

interface Overview {
  current: CurrentRuns
  range: RangeName
  history: RunHistory
  workers: LiveWorker[]
  /** Browser contexts that need a person to sign in. */
  needing: NeededSignIn[]
  lastRuns: Run[]
  queuerLabel: QueuerLabel
  offersKey: boolean
  workflows: Workflow[]
  storage: { bytes: number; quotaMegabytes: number }
}

const rangeTitles: Record<RangeName, string> = { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days' }

const rangeLabels: Record<RangeName, string> = { '1h': '1 hour', '24h': '24 hours', '7d': '7 days' }

function renderOverview(overview: Overview): Html {
  const { workers, history, workflows } = overview
  const period = bucketFilter({
    startsAt: history.buckets.at(0)?.startsAt ?? 0,
    endsAt: history.buckets.at(-1)?.endsAt ?? 0,
  })
  return html`${heading('Overview', { actions: renderRanges(overview.range) })}
    <div id="overview" data-live="/runs/changes">
      ${workers.length === 0 ? noWorkers : nothing} ${renderNeeding(overview.needing)} ${history.isIncomplete ? incomplete : nothing}
      ${renderTiles(overview, period)} ${renderHistory(overview)}
      ${history.workflows.length > 0 ? html`<h2>Workflows</h2>${renderWorkflowTable(history.workflows, workflows, period)}` : nothing}
      ${renderLastRuns(overview)}
    </div>`
}

/** Links, so that they work without a script. */
function renderRanges(current: RangeName): Html {
  const links = (Object.keys(ranges) as RangeName[]).map(
    (name) =>
      html`<li><a href="/?range=${name}" ${name === current ? html`aria-current="true"` : nothing}>${rangeLabels[name]}</a></li>`,
  )
  return html`<nav class="chips" aria-label="Range"><ul>${links}</ul></nav>`
}

const noWorkers = notice(
  'warning',
  html`<strong>No workers are running.</strong> Queued runs start when a worker does. Start one with <code>${shellCommand('worker')}</code>.`,
)

const incomplete = notice('quiet', 'Earlier runs are still being added up. Reload this page in a minute.')

function renderTiles(overview: Overview, period: ReturnType<typeof bucketFilter>): Html {
  const { current, history, workers, storage, range } = overview
  const { ready, delayed, running, waiting, oldestReady } = current
  const groups = history.buckets.map(({ counts }) => groupOutcomes(counts))
  const succeeded = groups.reduce((total, { good }) => total + good, 0)
  const failed = groups.reduce((total, { bad }) => total + bad, 0)
  const slots = workers.reduce((total, worker) => total + worker.slots, 0)
  const queueNote = oldestReady
    ? html`oldest <a href="/runs/${oldestReady.id}">${time(oldestReady.createdAt)}</a>`
    : delayed > 0
      ? 'scheduled for later'
      : 'queue is empty'
  const rangeNote = `in the ${rangeTitles[range].toLowerCase()}`
  const failureNote = failed === 0 ? rangeNote : `${((100 * failed) / (succeeded + failed)).toFixed(1)}% failure rate`
  const good = toRunQuery({ ...period, statuses: ['succeeded'] })
  const bad = toRunQuery({ ...period, statuses: ['failed', 'timedOut'] })
  return html`<ul class="tiles">
    ${tile('Queued', ready + delayed, '/runs?status=queued', queueNote)}
    ${tile('Running', running, '/runs?status=running', `${slots} worker ${slots === 1 ? 'slot' : 'slots'}`)}
    ${waiting === 0 ? nothing : tile('Waiting', waiting, '/runs?status=waiting', html`<a href="/waits">questions</a>`)}
    ${tile('Succeeded', succeeded, `/runs?${good}`, rangeNote)}
    ${tile('Failed', failed, `/runs?${bad}`, failureNote, failed > 0 ? 'bad' : '')}
    ${tile('Workers', workers.length, undefined, describeHosts(workers))}
    ${renderStorage(storage)}
  </ul>`
}

function renderStorage({ bytes, quotaMegabytes }: Overview['storage']): Html {
  const quotaBytes = quotaMegabytes * 1024 * 1024
  const isFull = quotaBytes > 0 && bytes >= quotaBytes
  const note = quotaBytes === 0 ? 'no limit' : `${isFull ? 'full: ' : ''}of ${formatBytes(quotaBytes)}`
  return tile('Storage', formatBytes(bytes), undefined, note, isFull ? 'bad' : '')
}

function tile(title: string, count: number | string, path: string | undefined, note: Html | string, tone = ''): Html {
  const name = path ? html`<a href="${path}">${title}</a>` : title
  return html`<li class="tile ${tone}"><h2>${name}</h2><p class="count">${count.toLocaleString('en')}</p><p class="muted">${note}</p></li>`
}

function describeHosts(workers: LiveWorker[]): string {
  const hosts = [...new Set(workers.map(({ host }) => (host === hostname() ? 'this machine' : host)))]
  return hosts.length === 0
    ? 'none running'
    : `on ${hosts.slice(0, 3).join(', ')}${hosts.length > 3 ? ' and others' : ''}`
}

function renderHistory({ history, range, offersKey, workflows }: Overview): Html {
  const title = rangeTitles[range]
  if (history.buckets.some(({ counts }) => sumCounts(counts) > 0)) return renderRunChart(history.buckets, title)
  const advice = offersKey
    ? html`Create an <a href="/api-keys/new">API key</a> for your program, or queue a run from a workflow’s page.`
    : html`Queue a run from your program with an API key, or from a workflow’s page.`
  const installed = workflows.length === 1 ? '1 workflow is' : `${workflows.length} workflows are`
  return emptyState(
    `No finished runs in the ${title.toLowerCase()}`,
    html`<p>${installed} deployed. ${advice}</p><p><a class="button" href="/workflows">View workflows</a></p>`,
  )
}

function renderLastRuns({ lastRuns, workflows, queuerLabel }: Overview): Html | '' {
  if (lastRuns.length === 0) return nothing
  return html`<h2>Last runs</h2>
    ${renderRunTable({ runs: lastRuns, workflows, queuerLabel })}
    <p class="pages"><span></span><a href="/runs">All runs →</a></p>`
}

// The table of workflows in the overview: how many runs, how many failed, how long they took.

const columns = [
  'Workflow',
  { number: 'Runs' },
  { number: 'Failure rate' },
  { number: 'p50' },
  { number: 'p95' },
  'Last run',
  'History',
]

/** A percentile comes from buckets of durations, and is at most 9 % from the true one. */
function renderPercentile(milliseconds: number | null): string {
  return milliseconds === null ? '–' : `≈\u00a0${formatDuration(milliseconds)}`
}

/** @param period the list's filter for the range. */
function renderWorkflowTable(
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
      sumCounts(counts).toLocaleString('en'),
      bad === 0 ? rate : html`<a class="danger" href="${listed({ statuses: ['failed', 'timedOut'] })}">${rate}</a>`,
      renderPercentile(p50),
      renderPercentile(p95),
      time(lastFinishedAt),
      renderSparkline(history),
    ]
  })
  return html`<div class="workflow-statistics">${table(columns, rows, 'Finished runs by workflow')}</div>`
}

// Bar charts of finished runs: a large one whose bars lead to the list, also as a table, and small ones for tables.

const axisLabels = 4
const barsPerTwoDays = 8

function groupOutcomes({ succeeded, failed, timedOut, cancelled, expired }: OutcomeCounts) {
  return { good: succeeded, bad: failed + timedOut, other: cancelled + expired }
}

type Outcomes = ReturnType<typeof groupOutcomes>

const kinds = ['good', 'bad', 'other'] as const
const labels = { good: 'succeeded', bad: 'failed', other: 'cancelled or expired' }

/** The list's filter for runs that were queued within the bucket. */
function bucketFilter({ startsAt, endsAt }: Pick<TimeBucket, 'startsAt' | 'endsAt'>) {
  return { from: formatLocalTime(startsAt, 'UTC'), until: formatLocalTime(endsAt, 'UTC'), zone: 'UTC' }
}

function renderRunChart(buckets: TimeBucket[], title: string): Html {
  const bars = buckets.map((bucket) => ({
    outcomes: groupOutcomes(bucket.counts),
    path: `/runs?${toRunQuery({ ...bucketFilter(bucket), statuses: [...outcomes] })}`,
    startsAt: bucket.startsAt,
  }))
  const top = roundUp(Math.max(1, ...buckets.map(({ counts }) => sumCounts(counts))))
  const total = (kind: keyof Outcomes) => bars.reduce((sum, { outcomes: each }) => sum + each[kind], 0)
  const summary = `Finished runs by when they were queued: ${describe({ good: total('good'), bad: total('bad'), other: total('other') })}.`
  const style = (buckets.at(1)?.startsAt ?? 0) - (buckets.at(0)?.startsAt ?? 0) > 3_600_000 ? 'day' : 'time'
  const rows = bars.map(({ outcomes: each, path, startsAt }) => [
    html`<a href="${path}">${recentTime(startsAt, style === 'day' ? 'both' : 'time')}</a>`,
    ...kinds.map((kind) => String(each[kind])),
  ])
  const step = style === 'day' ? barsPerTwoDays : Math.ceil(bars.length / axisLabels)
  const cells = bars.map(({ startsAt }, index) => {
    if (index === bars.length - 1) return html`<span>now</span>`
    // A label too close to "now" would overlap it.
    return index % step === 0 && index < bars.length - step / 2 ? recentTime(startsAt, style) : html`<span></span>`
  })
  return html`<figure class="card chart">
    <figcaption>
      <h2>${title}</h2>
      <ul class="legend">${kinds.map((kind) => html`<li class="${kind}">${labels[kind]}</li>`)}</ul>
    </figcaption>
    ${renderPlot(
      top,
      bars.map((bar, index) => renderBar(bar, index, top)),
      cells,
    )}
    <details>
      <summary>Show as table</summary>
      ${table(['Queued from', ...['Succeeded', 'Failed', 'Cancelled or expired'].map((number) => ({ number }))], rows, summary)}
    </details>
  </figure>`
}

/** The table has the same links for keyboards and screen readers. */
function renderBar(bar: { outcomes: Outcomes; path: string; startsAt: number }, index: number, top: number): Html {
  const x = index * pitch + (pitch - barWidth) / 2
  const title = `${new Date(bar.startsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC: ${describe(bar.outcomes)}`
  const target = html`<rect class="target" x="${index * pitch}" y="0" width="${pitch}" height="${height + 4}" />`
  return html`<a href="${bar.path}" tabindex="-1"><title>${title}</title>${target}${renderSegments(bar.outcomes, x, top)}</a>`
}

function renderSegments(counted: Outcomes, x: number, top: number): (Html | string)[] {
  let y = height + 2
  return kinds.map((kind) => {
    if (counted[kind] === 0) return nothing
    // At least two units, so that one run is visible next to a thousand.
    const size = Math.max(2, (counted[kind] / top) * (height - 6))
    y -= size
    return html`<rect class="${kind}" x="${x}" y="${y.toFixed(1)}" width="${barWidth}" height="${size.toFixed(1)}" rx="2" />`
  })
}

/** For a table's cell, which says the same in numbers. */
function renderSparkline(history: OutcomeCounts[]): Html {
  const top = Math.max(1, ...history.map(sumCounts))
  const bars = history.map((counts, index) =>
    renderSegments(groupOutcomes(counts), index * pitch + (pitch - barWidth) / 2, top),
  )
  return html`<svg class="sparkline" viewBox="0 0 ${pitch * history.length} ${height + 4}" preserveAspectRatio="none"
    aria-hidden="true">${renderLine(0, pitch * history.length)}${bars}</svg>`
}

function describe(counted: Outcomes): string {
  const present = kinds.filter((kind) => counted[kind] > 0)
  return present.map((kind) => `${counted[kind].toLocaleString('en')} ${labels[kind]}`).join(', ') || 'none'
}
