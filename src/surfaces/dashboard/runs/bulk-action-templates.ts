/** Templates of bulk actions: links from the list of runs, the preview, and the progress. */
import { type BulkAction, type BulkActionKind, changeableStatuses } from '../../../domain/bulk-actions/bulk-action.ts'
import { runsMax } from '../../../domain/bulk-actions/bulk-worker.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import { time } from '../format.ts'
import { backLink, badge, emptyState, type Fact, facts, type Html, heading, html, nothing, notice } from '../html.ts'
import { type RunFilter, toRunQuery } from './run-filter.ts'
import { runLink, statusOptions } from './run-labels.ts'

/** Runs that a preview counts. */
export const countedMax = 10_000

export const titles: Record<BulkActionKind, string> = { cancel: 'Cancel runs', rerun: 'Run again' }

const format = (count: number) => count.toLocaleString('en')

const bulkPath = (kind: BulkActionKind, filter: RunFilter) => `/runs/bulk-${kind}?${toRunQuery(filter)}`

/** Links to the previews of what the runs of the filter allow. */
export function renderBulkLinks(filter: RunFilter): Html[] {
  const kinds = Object.keys(titles) as BulkActionKind[]
  const fits = (kind: BulkActionKind) =>
    filter.statuses.length === 0 || filter.statuses.some((status) => changeableStatuses(kind).includes(status))
  return kinds
    .filter(fits)
    .map((kind) => html`<a class="button secondary" href="${bulkPath(kind, filter)}">${titles[kind]}…</a>`)
}

/** One line about an unfinished action. */
export function renderBulkSummary({ id, kind, matched }: BulkAction): Html {
  const doing = kind === 'cancel' ? 'Runs are being cancelled' : 'Runs are being queued again'
  return html`${doing}: ${format(matched)} so far. <a href="/runs/bulk-actions/${id}">See progress</a>`
}

interface Preview {
  kind: BulkActionKind
  filter: RunFilter
  /** Title of the workflow; empty for all. */
  workflow: string
  /** Up to one more than `countedMax`; `undefined` if the filter cannot be used. */
  count: number | undefined
  /** Of the form. */
  id: string
  error: string
}

const texts: Record<BulkActionKind, { question: string; consequence: string; button: string; none: string }> = {
  cancel: {
    question: 'Cancel these runs?',
    consequence: 'Queued runs will not start. Running ones are asked to stop. This cannot be undone.',
    button: 'Cancel',
    none: 'No runs to cancel',
  },
  rerun: {
    question: 'Run these runs again?',
    consequence:
      'Each is queued again as a new run, with the same variables and secrets, for the current version of its workflow.',
    button: 'Run again:',
    none: 'No runs to run again',
  },
}

export function renderPreview({ kind, filter, workflow, count, id, error }: Preview): Html {
  const { question, consequence, button, none } = texts[kind]
  const list = `/runs?${toRunQuery(filter)}`
  const top = html`${backLink(list, 'Runs')} ${heading(question)} ${error ? notice('bad', error) : nothing}`
  if (filter.search !== '') {
    const link = bulkPath(kind, { ...filter, search: '' })
    return html`${top} ${emptyState('Not with a search', html`<p>Bulk actions use the workflow, the status and the period. <a href="${link}">Continue without the search</a></p>`)}`
  }
  if (!count) return html`${top} ${emptyState(none, html`<p><a href="${list}">Back to the runs</a></p>`)}`
  const isMore = count > countedMax
  const number = `${format(Math.min(count, countedMax))}${isMore ? ' or more' : ''} ${count === 1 ? 'run' : 'runs'}`
  const chosen = filter.statuses.length === 0 ? changeableStatuses(kind) : filter.statuses
  const statuses = chosen.filter((status) => changeableStatuses(kind).includes(status))
  return html`${top}
    <form method="post" class="card">
      <p>${consequence} Runs that are queued later are not affected.</p>
      ${facts([
        ['Runs', html`<strong>${number}</strong>${isMore ? ` At most ${format(runsMax)} are changed.` : nothing}`],
        ['Workflow', workflow || 'All workflows'],
        ['Status', statusTitles(statuses)],
        ...periodFacts(filter),
      ])}
      <input type="hidden" name="id" value="${id}" />
      <div class="buttons">
        <button class="${kind === 'cancel' ? 'danger' : ''}">${button} ${number}</button><a href="${list}">Back to the runs</a>
      </div>
    </form>`
}

function statusTitles(statuses: readonly RunStatus[]): string {
  const chosen = statusOptions.filter(({ value }) => statuses.includes(value))
  return chosen.map(({ title }) => title).join(', ')
}

function periodFacts({ from, until, zone }: RunFilter): Fact[] {
  const fact = (term: string, local: string): Fact[] => (local ? [[term, `${local.replace('T', ' ')} ${zone}`]] : [])
  return [...fact('Queued from', from), ...fact('Queued before', until)]
}

const statusBadges = {
  working: badge('busy', 'Working'),
  waiting: badge('waiting', 'Waiting'),
  finished: badge('good', 'Finished'),
}

const waits = {
  queuedRunsLimit: 'Waiting: the account has as many queued runs as it may have. It continues when runs have started.',
  storageQuota: 'Waiting: the account’s storage is full. It continues when runs or browser contexts were deleted.',
}

/** @param workflow the title of the filter's workflow; empty for all. */
export function renderBulkAction(action: BulkAction, workflow: string): Html {
  const { kind, status, waitsFor, done, skipped, failed, firstFailure, limitReached, filter } = action
  const doneLabel = kind === 'cancel' ? 'Cancelled' : 'Queued again'
  const skippedLabel = kind === 'cancel' ? 'Ended before' : 'Not ended'
  return html`${backLink('/runs', 'Runs')} ${heading(titles[kind])}
    <div id="bulk-action" data-live="/runs/bulk-actions/${action.id}/changes">
      <p aria-live="polite">${statusBadges[status]}</p>
      ${waitsFor === null ? nothing : notice('warning', waits[waitsFor])}
      ${limitReached ? notice('warning', `Only the first ${format(runsMax)} runs were changed. Start again for the others.`) : nothing}
      ${firstFailure ? notice('bad', html`${format(failed)} could not be run again, the first of them ${runLink(firstFailure.runId)}: ${firstFailure.detail}`) : nothing}
      <div class="card">${facts([
        [doneLabel, format(done)],
        [skippedLabel, format(skipped)],
        ...(kind === 'rerun' ? [['Could not be run again', format(failed)] satisfies Fact] : []),
        ['Workflow', workflow || 'All workflows'],
        ['Status', statusTitles([filter.status ?? changeableStatuses(kind)].flat())],
        ['Started', time(action.createdAt, 'exact')],
        ['Finished', time(action.finishedAt, 'exact', '–')],
      ])}</div>
    </div>`
}
