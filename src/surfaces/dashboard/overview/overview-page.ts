/** The overview: runs of the last 24 hours, what is queued and running now, and the workers. */
import { hostname } from 'node:os'
import type { Run } from '../../../domain/runs/run.ts'
import type { AccountStatistics, HourOfRuns } from '../../../domain/runs/run-statistics.ts'
import type { LiveWorker } from '../../../domain/runs/workers.ts'
import { formatBytes, time } from '../format.ts'
import { emptyState, type Html, heading, html, nothing, notice, table } from '../html.ts'
import type { PageHandler } from '../page-handler.ts'
import { groupOutcomes, renderRunChart } from './run-chart.ts'

const failuresShown = 5

export const showOverview: PageHandler = async ({ account }, deps) => {
  const { statistics, workers, runs, apiKeys, workflows, usage } = deps
  const [counted, alive, failed, timedOut, keys] = await Promise.all([
    statistics.count(account.id),
    workers.alive(),
    runs.list(account.id, { status: 'failed', limit: failuresShown }),
    runs.list(account.id, { status: 'timedOut', limit: failuresShown }),
    apiKeys.list(account.id),
  ])
  const failures = [...(failed?.runs ?? []), ...(timedOut?.runs ?? [])].sort((a, b) => (a.id < b.id ? 1 : -1))
  const body = renderOverview({
    statistics: counted,
    workers: alive,
    failures: failures.slice(0, failuresShown),
    hasKey: keys.length > 0,
    workflowCount: workflows.current(account.id).list().length,
    storage: { bytes: usage.bytesOf(account.id), quotaMegabytes: usage.quotaMegabytes },
  })
  return { title: 'Overview', tab: 'overview', body }
}

interface Overview {
  statistics: AccountStatistics
  workers: LiveWorker[]
  failures: Run[]
  hasKey: boolean
  workflowCount: number
  storage: { bytes: number; quotaMegabytes: number }
}

function renderOverview(overview: Overview): Html {
  const { workers, failures } = overview
  return html`${heading('Overview')}
    <div id="overview" data-live="/runs/changes">
      ${workers.length === 0 ? noWorkers : nothing} ${renderTiles(overview)} ${renderLastDay(overview)}
      ${failures.length > 0 ? renderFailures(failures) : nothing}
    </div>`
}

const noWorkers = notice(
  'warning',
  html`<strong>No workers are running.</strong> Queued runs start when a worker does. Start one with <code>npm run worker</code>.`,
)

function renderTiles({ statistics, workers, storage }: Overview): Html {
  const { ready, delayed, running, oldestReady, hours } = statistics
  const { succeeded, failed } = countOutcomes(hours)
  const slots = workers.reduce((total, worker) => total + worker.slots, 0)
  const queueNote = oldestReady
    ? html`oldest <a href="/runs/${oldestReady.id}">${time(oldestReady.createdAt)}</a>`
    : delayed > 0
      ? 'scheduled for later'
      : 'queue is empty'
  const failureNote =
    failed === 0 ? 'in the last 24 hours' : `${((100 * failed) / (succeeded + failed)).toFixed(1)}% failure rate`
  return html`<ul class="tiles">
    ${tile('Queued', ready + delayed, '/runs?status=queued', queueNote)}
    ${tile('Running', running, '/runs?status=running', `${slots} worker ${slots === 1 ? 'slot' : 'slots'}`)}
    ${tile('Succeeded', succeeded, '/runs?status=succeeded', 'in the last 24 hours')}
    ${tile('Failed', failed, '/runs?status=failed', failureNote, failed > 0 ? 'bad' : '')}
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

function countOutcomes(hours: HourOfRuns[]) {
  const outcomes = hours.map(({ counts }) => groupOutcomes(counts))
  return {
    succeeded: outcomes.reduce((total, { good }) => total + good, 0),
    failed: outcomes.reduce((total, { bad }) => total + bad, 0),
  }
}

function renderLastDay({ statistics, hasKey, workflowCount }: Overview): Html {
  const hasRuns = statistics.hours.some(({ counts }) => Object.values(counts).some((count) => count > 0))
  if (hasRuns) return renderRunChart(statistics.hours)
  const advice = hasKey
    ? html`Queue a run from your program with an API key, or from a workflow’s page.`
    : html`Create an <a href="/api-keys/new">API key</a> for your program, or queue a run from a workflow’s page.`
  const installed = workflowCount === 1 ? '1 workflow is' : `${workflowCount} workflows are`
  return emptyState(
    'No runs in the last 24 hours',
    html`<p>${installed} deployed. ${advice}</p><p><a class="button" href="/workflows">View workflows</a></p>`,
  )
}

function renderFailures(failures: Run[]): Html {
  const rows = failures.map((run) => [
    html`<a href="/runs/${run.id}"><strong>${run.workflowId}</strong></a>`,
    run.status === 'timedOut' ? 'Exceeded its time limit' : (run.error?.message ?? run.reason ?? ''),
    time(run.finishedAt),
  ])
  return html`<h2>Recent failures</h2>
    ${table(['Workflow', 'Error', 'Finished'], rows, 'Recent failures')}`
}
