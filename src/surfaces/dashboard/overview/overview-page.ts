/** The overview: what is queued and running now, the workers, and the runs of a range of time by workflow. */
import { hostname } from 'node:os'
import type { LiveWorker } from '../../../domain/queue/workers.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { outcomes } from '../../../domain/statistics/run-rollups.ts'
import {
  type CurrentRuns,
  type RangeName,
  type RunHistory,
  ranges,
  sumCounts,
  type WorkflowStatistics,
} from '../../../domain/statistics/run-statistics.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { formatBytes, formatDuration, time } from '../format.ts'
import { emptyState, type Html, heading, html, nothing, notice, table } from '../html.ts'
import type { PageHandler } from '../page-handler.ts'
import { type RunFilter, toRunQuery } from '../runs/run-filter.ts'
import { type QueuerLabel, readQueuerLabels } from '../runs/run-labels.ts'
import { renderRunTable } from '../runs/run-table.ts'
import { bucketFilter, groupOutcomes, renderRunChart, renderSparkline } from './run-chart.ts'

const runsShown = 5

export const showOverview: PageHandler = async (request, deps) => {
  const { account, query } = request
  const { statistics, workers, runs, apiKeys, workflows, usage } = deps
  const name = query.get('range') ?? ''
  const range = Object.hasOwn(ranges, name) ? (name as RangeName) : '24h'
  const [current, history, alive, last, keys] = await Promise.all([
    statistics.current(account.id),
    statistics.history(account.id, range),
    workers.alive(),
    runs.list(account.id, { limit: runsShown }),
    apiKeys.list(account.id),
  ])
  const body = renderOverview({
    current,
    range,
    history,
    workers: alive,
    lastRuns: last?.runs ?? [],
    queuerLabel: await readQueuerLabels(deps, account.id),
    hasKey: keys.length > 0,
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
  lastRuns: Run[]
  queuerLabel: QueuerLabel
  hasKey: boolean
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
      ${workers.length === 0 ? noWorkers : nothing} ${history.isIncomplete ? incomplete : nothing}
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
  html`<strong>No workers are running.</strong> Queued runs start when a worker does. Start one with <code>npm run worker</code>.`,
)

const incomplete = notice('quiet', 'Earlier runs are still being added up. Reload this page in a minute.')

function renderTiles(overview: Overview, period: ReturnType<typeof bucketFilter>): Html {
  const { current, history, workers, storage, range } = overview
  const { ready, delayed, running, oldestReady } = current
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

function renderHistory({ history, range, hasKey, workflows }: Overview): Html {
  const title = rangeTitles[range]
  if (history.buckets.some(({ counts }) => sumCounts(counts) > 0)) return renderRunChart(history.buckets, title)
  const advice = hasKey
    ? html`Queue a run from your program with an API key, or from a workflow’s page.`
    : html`Create an <a href="/api-keys/new">API key</a> for your program, or queue a run from a workflow’s page.`
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
