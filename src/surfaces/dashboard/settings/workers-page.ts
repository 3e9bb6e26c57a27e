/** The workers that execute the account's runs: those of the service, and its own ones outside of it. */
import type { RemoteWorker } from '../../../domain/remote-workers/remote-workers.ts'
import { time } from '../format.ts'
import { emptyState, type Html, html, nothing, table } from '../html.ts'
import { settingsPage } from '../layout.ts'
import type { PageHandler } from '../page-handler.ts'

const path = '/settings/workers'

export const listWorkers: PageHandler = async (request, { remoteWorkers }) => {
  const workers = await remoteWorkers.listWithRuns(request.account.id)
  const guide = html`<a href="/docs/workers.html">Write a worker</a> to execute runs in another language or network.`
  const list =
    workers.length === 0
      ? emptyState('No workers', html`No worker is running, so queued runs wait. ${guide}`)
      : html`<p class="muted">The workers of the service, and your own ones. ${guide}</p>${renderWorkers(workers)}`
  return settingsPage(request, path, list)
}

function renderWorkers(workers: readonly (RemoteWorker & { runs: number })[]): Html {
  const rows = workers.map(({ id, name, language, version, host, slots, runs, seenAt, workflows, deployed }) => [
    html`<div class="stack">
      <strong>${name ?? 'Worker of the service'}</strong>
      <small>${id}</small>
      ${language === null ? nothing : html`<small>${language}${version === null ? '' : `, version ${version}`}</small>`}
    </div>`,
    host ?? '',
    html`${runs}`,
    html`${slots}`,
    time(seenAt),
    html`<div class="stack">
      ${name === null || deployed ? html`<span>Deployed workflows</span>` : nothing}
      ${workflows.map((each) => html`<span><a href="/workflows/${each.id}">${each.id}</a> ${each.version}</span>`)}
    </div>`,
  ])
  const columns = ['Worker', 'Host', { number: 'Your runs' }, { number: 'Slots' }, 'Last heartbeat', 'Workflows']
  return table(columns, rows, 'Workers')
}
