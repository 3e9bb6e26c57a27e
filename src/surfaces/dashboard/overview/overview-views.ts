/** What the overview looks like. */
import { hostname } from 'node:os'
import type { Run } from '../../../domain/runs/run.ts'
import type { AccountStatistics, HourOfRuns } from '../../../domain/runs/run-statistics.ts'
import type { LiveWorker } from '../../../domain/runs/workers.ts'
import { emptyState, heading, moment, notice, table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { chart, shares } from './chart.ts'

interface Overview {
  counted: AccountStatistics
  alive: LiveWorker[]
  failures: Run[]
  hasKey: boolean
  workflows: number
}

export function overviewView(overview: Overview): Html {
  const { counted, alive, failures } = overview
  const waits = counted.ready + counted.delayed > 0
  return html`${heading('Overview')}
    <div id="overview" data-live="/runs/changes">
      ${alive.length === 0 ? noWorker(waits) : nothing} ${tiles(overview)} ${lastDay(overview)}
      ${failures.length > 0 ? failureTable(failures) : nothing}
    </div>`
}

function noWorker(waits: boolean): Html {
  const what = waits ? 'Runs wait until one starts.' : 'Runs that are queued will wait.'
  return notice(
    'warning',
    html`<strong>No worker is alive.</strong> ${what} Start one with <code>npm run worker</code>.`,
  )
}

function tiles({ counted, alive }: Overview): Html {
  const { ready, delayed, running, oldestReady, hours } = counted
  const { succeeded, failed } = sum(hours)
  const slots = alive.reduce((total, worker) => total + worker.slots, 0)
  const oldest = oldestReady
    ? html`oldest <a href="/runs/${oldestReady.id}">${moment(oldestReady.createdAt)}</a>`
    : delayed > 0
      ? 'for a later time'
      : 'nothing waits'
  return html`<ul class="tiles">
    ${tile('Waiting', ready + delayed, '/runs?status=queued', oldest)}
    ${tile('Running', running, '/runs?status=running', `on ${slots} ${slots === 1 ? 'slot' : 'slots'}`)}
    ${tile('Succeeded', succeeded, '/runs?status=succeeded', 'of those queued in the last 24 hours')}
    ${tile('Failed', failed, '/runs?status=failed', failed === 0 ? 'none in the last 24 hours' : rate(succeeded, failed), failed > 0 ? 'bad' : '')}
    ${tile('Workers alive', alive.length, undefined, workersOf(alive))}
  </ul>`
}

function tile(title: string, count: number, path: string | undefined, note: Html | string, tone = ''): Html {
  const name = path ? html`<a href="${path}">${title}</a>` : title
  return html`<li class="tile ${tone}"><h2>${name}</h2><p class="count">${count.toLocaleString('en')}</p><p class="muted">${note}</p></li>`
}

function rate(succeeded: number, failed: number): string {
  return `${((100 * failed) / (succeeded + failed)).toFixed(1)} % of those that ended by themselves`
}

function workersOf(alive: LiveWorker[]): string {
  const hosts = [...new Set(alive.map(({ host }) => (host === hostname() ? 'this machine' : host)))]
  return hosts.length === 0 ? 'none' : `on ${hosts.slice(0, 3).join(', ')}${hosts.length > 3 ? ' and others' : ''}`
}

function sum(hours: HourOfRuns[]) {
  const total = { succeeded: 0, failed: 0 }
  for (const hour of hours) {
    const { good, bad } = shares(hour.counts)
    total.succeeded += good
    total.failed += bad
  }
  return total
}

function lastDay({ counted, hasKey, workflows }: Overview): Html {
  const any = counted.hours.some(({ counts }) => Object.values(counts).some((count) => count > 0))
  if (any) return chart(counted.hours)
  const key = hasKey
    ? html`Your programs queue runs with an API key; you can do it by hand on a workflow's page.`
    : html`Create an <a href="/api-keys/new">API key</a> for your program, or queue a run by hand on a workflow's page.`
  const many = workflows === 1 ? 'is 1 workflow' : `are ${workflows} workflows`
  return emptyState(
    'No run in the last 24 hours',
    html`<p>There ${many} to run. ${key}</p><p><a class="button" href="/workflows">See the workflows</a></p>`,
  )
}

function failureTable(failures: Run[]): Html {
  const rows = failures.map((run) => [
    html`<a href="/runs/${run.id}"><strong>${run.workflowId}</strong></a>`,
    run.status === 'timedOut' ? 'Took longer than its time limit' : (run.error?.message ?? run.reason ?? ''),
    moment(run.finishedAt),
  ])
  return html`<h2>Latest failures</h2>
    ${table(['Workflow', 'Why', 'Ended'], rows, 'Latest failures')}`
}
