/** Templates of the page of a run, its cancellation and its deletion. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { History } from '../../../domain/runs/run-history.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { contextLink, persistLabels } from '../browser-contexts/context-labels.ts'
import { elapsedSince, time } from '../format.ts'
import { backLink, copyable, copyableId, type Fact, facts, type Html, heading, html, nothing, notice } from '../html.ts'
import { renderLiveView } from '../live-view/live-view-template.ts'
import { readCommand } from '../workflows/curl-commands.ts'
import { renderArtifacts } from './run-artifacts.ts'
import type { Attempt } from './run-attempts.ts'
import { renderEvidence } from './run-evidence.ts'
import { toRunQuery } from './run-filter.ts'
import { describeEnd, describeWait, renderRunDuration, runBadge, shortId } from './run-labels.ts'
import { renderLog } from './run-log-template.ts'
import { renderTimeline } from './run-timeline.ts'

interface RunPage {
  run: Run
  history: History
  attempts: Attempt[]
  /** `undefined` when it is no longer deployed. */
  workflow: Workflow | undefined
  queuer: Html
  /** `undefined` unless the run was cancelled by a known key or user. */
  canceller: Html | undefined
  /** `undefined` when the run has none, or it was deleted. */
  context: BrowserContext | undefined
  workers: number
  /** The user of the page. */
  userId: string
  executionUrl: string
  done: string
}

export function renderRun(page: RunPage): Html {
  const { run, history, attempts, workflow, executionUrl, done } = page
  const { id, workflowId, status } = run
  const last = history.events.at(-1)?.sequence ?? 0
  const live = isFinal(status) ? nothing : html`data-live="/runs/${id}/changes?after=${last}"`
  const wasFinished = done === 'finished' && isFinal(status)
  const isUnfinished = done === 'unfinished' && !isFinal(status)
  const again = html`<a class="button secondary" href="/workflows/${workflowId}?from=${id}">Run again</a>`
  const cancel = html`<a class="button secondary danger" href="/runs/${id}/cancel">Cancel run</a>`
  const remove = html`<a class="button secondary danger" href="/runs/${id}/delete">Delete run</a>`
  const end = isFinal(status) ? remove : run.cancelRequested ? nothing : cancel
  const actions = html`${workflow ? again : nothing} ${end}`
  return html`${backLink('/runs', 'Runs')}
    ${wasFinished ? notice('warning', 'This run had already finished, so it was not cancelled.') : nothing}
    ${isUnfinished ? notice('warning', 'This run has not finished. Cancel it before you delete it.') : nothing}
    <div id="run" ${live}>
      <div id="run-status" role="status" aria-live="polite">${runBadge(run)}</div> ${heading(workflow?.title ?? workflowId, { lead: copyableId('run-id', id, 'Copy run ID'), actions })}
      ${renderState(page)} ${renderProgress(run)} ${renderLiveView(run, workflow?.usesBrowser ?? false, page.userId)}
      <div class="with-rail">
        ${renderRail(page)}
        <div>
          ${renderTimeline(run, attempts, history.othersOmitted)} ${renderEvidence(run)} ${renderArtifacts(run)} ${renderLog(run, history, executionUrl)}
          <div class="pair">
            ${renderJson('variables', 'Variables', run.variables, page)}
            ${status === 'succeeded' ? renderJson('output', 'Output', run.output, page) : nothing}
          </div>
        </div>
      </div>
    </div>`
}

function renderRail(page: RunPage): Html {
  const { main, details } = runFacts(page)
  return html`<aside class="card rail" aria-label="Facts">
    ${facts(main)}
    <details id="more-facts"><summary>More</summary>${facts(details)}</details>
  </aside>`
}

function renderState(page: RunPage): Html | '' {
  const { run, workers } = page
  const { error, status, expiresAt, startedAt } = run
  const wait = describeWait(run, page)
  if (wait) {
    const expiry = expiresAt !== null && startedAt === null && html` Expires ${time(expiresAt)} if it has not started.`
    return notice(workers === 0 ? 'warning' : 'quiet', html`${wait}${expiry || nothing}`)
  }
  if (!isFinal(status)) {
    return run.cancelRequested
      ? notice(
          'quiet',
          html`Cancelled by ${page.canceller ?? 'a user or an API key'}. The workflow has a moment to stop by itself.`,
        )
      : renderRunningStep(page.attempts.at(-1))
  }
  const end = status === 'cancelled' && page.canceller ? html`Cancelled by ${page.canceller}.` : describeEnd(run)
  if (status === 'failed' || status === 'timedOut') {
    const shown = page.attempts.at(-1)?.error ?? error
    const message = shown && html`<p class="error-message"><strong>${shown.name}</strong> ${shown.message}</p>`
    return notice('bad', html`${end} ${message ?? nothing}`)
  }
  return end ? notice('quiet', end) : nothing
}

/** What a running run does now. */
function renderRunningStep(attempt: Attempt | undefined): Html | '' {
  const step = attempt?.steps.findLast(({ state }) => state === 'running')
  if (!step) return nothing
  return html`<p class="muted">Step <strong>${step.name}</strong> has been running for ${elapsedSince(step.startedAt)}.</p>`
}

function renderProgress({ progress, status }: Run): Html | '' {
  if (!progress || status === 'succeeded' || status === 'queued') return nothing
  const percent = Math.round(progress.percent)
  return html`<div class="progress">
    <label for="progress">${progress.message ?? 'Progress'}</label> <span>${percent}%</span>
    <progress id="progress" value="${percent}" max="100"></progress>
  </div>`
}

function runFacts({ run, queuer, workflow, context }: RunPage): { main: Fact[]; details: Fact[] } {
  const { workflowId, attempts } = run
  const id = html`<code>${workflowId}</code>`
  const maxAttempts = workflow?.retry.maxAttempts ?? 1
  const isScheduled = run.availableAt !== null && run.startedAt === null
  const persist = persistLabels[run.persistContext ?? 'never']
  const main: (Fact | false)[] = [
    ['Workflow', workflow ? html`<a href="/workflows/${workflowId}">${id}</a>` : id],
    ['Duration', renderRunDuration(run)],
    ['Attempts', maxAttempts > 1 ? `${attempts} of ${maxAttempts}` : `${attempts}`],
    ['Queued by', queuer],
    run.rerunOf !== null && ['Repeats', html`<a href="/runs/${run.rerunOf}"><code>${shortId(run.rerunOf)}</code></a>`],
    run.tags.length > 0 && [
      'Tags',
      html`${run.tags.map((tag) => html`<a href="/runs?${toRunQuery({ search: tag })}"><code>${tag}</code></a> `)}`,
    ],
    isScheduled && ['Scheduled for', time(run.availableAt, 'exact')],
    ['Started', time(run.startedAt, 'exact', '–')],
    run.finishedAt !== null && ['Finished', time(run.finishedAt, 'exact')],
    run.browserContextId !== null && [
      'Browser context',
      context ? contextLink(context) : html`<span class="muted">deleted</span>`,
    ],
  ]
  const details: (Fact | false)[] = [
    ['Queued', time(run.createdAt, 'exact')],
    ['Workflow version', run.workflowVersion],
    run.deploymentId !== null && ['Deployment', html`<code>${run.deploymentId.slice(0, 12)}</code>`],
    ['Priority', `${run.priority}`],
    run.concurrencyKey !== null && ['Concurrency key', html`<code>${run.concurrencyKey}</code>`],
    run.queuePosition !== undefined && [
      'Place in queue',
      run.queuePosition === 1000 ? '1000 or later' : `${run.queuePosition}`,
    ],
    run.browserContextId !== null && ['Save browser state', persist],
    run.expiresAt !== null && ['Expires if not started', time(run.expiresAt, 'exact')],
  ]
  const present = (entries: (Fact | false)[]) => entries.filter((entry) => entry !== false)
  return { main: present(main), details: present(details) }
}

/** Characters. Longer JSON is truncated, with a command that reads all of it. */
const jsonLengthMax = 50_000

function renderJson(id: string, title: string, value: unknown, { run, executionUrl }: RunPage): Html {
  const text = JSON.stringify(value, null, 2)
  const rest =
    text.length > jsonLengthMax &&
    html`<p>This is only the beginning. Read all of it:</p>
      ${copyable(`${id}-command`, readCommand(executionUrl, run.id), { label: 'Copy command' })}`
  return html`<section class="card"><h2>${title}</h2>${copyable(id, text.slice(0, jsonLengthMax))}${rest || nothing}</section>`
}

export function renderCancellation(run: Run, workflow: Workflow | undefined): Html {
  const { id, status, workflowId } = run
  const title = workflow?.title ?? workflowId
  const consequence =
    status === 'running'
      ? 'The workflow is asked to stop; if it does not, its process is terminated. Completed work is not undone.'
      : 'The run will not start.'
  return html`${backLink(`/runs/${id}`, title)} ${heading('Cancel this run?')}
    <form method="post" class="card">
      <p>${consequence} This cannot be undone, but you can run the workflow again.</p>
      <p>${runBadge(run)} ${title} <code>${shortId(id)}</code></p>
      <div class="buttons"><button class="danger">Cancel run</button><a href="/runs/${id}">Keep run</a></div>
    </form>`
}

export function renderRunDeletion(run: Run, workflow: Workflow | undefined): Html {
  const { id, artifacts, workflowId } = run
  const title = workflow?.title ?? workflowId
  return html`${backLink(`/runs/${id}`, title)} ${heading('Delete this run?')}
    <form method="post" class="card">
      <p>Its variables, output, log and artifacts are erased. <strong>This cannot be undone.</strong></p>
      ${facts([
        ['Run', html`${runBadge(run)} ${title} <code>${shortId(id)}</code>`],
        ['Finished', time(run.finishedAt, 'exact')],
        ['Artifacts', artifacts.length === 0 ? 'none' : `${artifacts.length}`],
      ])}
      <div class="buttons"><button class="danger">Delete run</button><a href="/runs/${id}">Keep run</a></div>
    </form>`
}
