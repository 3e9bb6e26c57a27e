/** What the page of a run looks like. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { History } from '../../../domain/runs/run-history.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { contextLink, persistWords } from '../browser-contexts/context-labels.ts'
import { copyable, facts, heading, moment, notice, trail } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { readCommand } from '../workflows/curl.ts'
import { artifactsPart } from './artifacts.ts'
import type { Attempt } from './attempts.ts'
import { logPart } from './log-view.ts'
import { endedBecause, runDuration, shortId, statusBadge, waitsBecause } from './run-labels.ts'
import { timeLine } from './timeline.ts'

interface ShownRun {
  run: Run
  history: History
  attempts: Attempt[]
  /** `undefined` when it is not installed any more. */
  workflow: Workflow | undefined
  queuer: Html
  /** `undefined` when the run has none, or it was deleted. */
  context: BrowserContext | undefined
  /** How many live now. */
  workers: number
  executionUrl: string
  done: string
}

export function runView(shown: ShownRun): Html {
  const { run, history, attempts, executionUrl, done } = shown
  const last = history.events.at(-1)?.sequence ?? 0
  const live = isFinal(run.status) ? nothing : html`data-live="/runs/${run.id}/changes?after=${last}"`
  const hasFinished = done === 'finished' && isFinal(run.status)
  return html`${trail('/runs', 'Runs')}
    ${hasFinished ? notice('warning', 'The run had finished already; there was nothing to cancel.') : nothing}
    <div id="run" class="run" ${live}>
      ${head(shown)} ${stateOf(shown)} ${progressOf(run)} ${factsOf(shown)} ${timeLine(run, attempts, history.othersOmitted)}
      ${artifactsPart(run)} ${logPart(run, history, executionUrl)}
      <div class="pair">
        ${jsonPart('variables', 'Variables', run.variables, shown)}
        ${run.status === 'succeeded' ? jsonPart('output', 'Output', run.output, shown) : nothing}
      </div>
    </div>`
}

function head({ run, workflow }: ShownRun): Html {
  const { id, workflowId, status, cancelRequested } = run
  const isCancellable = !isFinal(status) && !cancelRequested
  const actions = html`${workflow ? html`<a class="button secondary" href="/workflows/${workflowId}?from=${id}">Run again</a>` : nothing}
    ${isCancellable ? html`<a class="button secondary danger" href="/runs/${id}/cancel">Cancel run</a>` : nothing}`
  const lead = html`<span class="copied"><code id="run-id">${id}</code>
    <button type="button" class="quiet" data-copy="#run-id" aria-label="Copy the run's id" hidden>Copy</button></span>`
  return html`<div class="run-head">${statusBadge(run)} ${heading(workflow?.title ?? workflowId, { lead, actions })}</div>`
}

/** Why it waits, or why it ended. */
function stateOf({ run, workflow, workers, context }: ShownRun): Html | '' {
  const { error, status, expiresAt, startedAt } = run
  const waits = waitsBecause(run, workflow, workers, context)
  if (waits) {
    const end =
      expiresAt === null || startedAt !== null
        ? nothing
        : html` It expires ${moment(expiresAt)} if it has not started by then.`
    return notice(workers === 0 ? 'warning' : 'quiet', html`${waits}${end}`)
  }
  if (!isFinal(status))
    return run.cancelRequested ? notice('quiet', 'It was asked to end, and is given a moment to do so.') : nothing
  const why = endedBecause(run)
  const said = error && html`<p class="said"><strong>${error.name}</strong> ${error.message}</p>`
  if (status === 'failed' || status === 'timedOut') return notice('bad', html`${why} ${said ?? nothing}`)
  return why ? notice('quiet', why) : nothing
}

function progressOf({ progress, status }: Run): Html | '' {
  if (!progress || status === 'succeeded' || status === 'queued') return nothing
  const percent = Math.round(progress.percent)
  return html`<div class="progress">
    <label for="progress">${progress.message ?? 'Progress'}</label> <span>${percent} %</span>
    <progress id="progress" value="${percent}" max="100"></progress>
  </div>`
}

function factsOf({ run, queuer, workflow, context }: ShownRun): Html {
  const { workflowId, workflowVersion } = run
  const name = workflow
    ? html`<a href="/workflows/${workflowId}"><code>${workflowId}</code></a>`
    : html`<code>${workflowId}</code>`
  const entries: [string, Html | string][] = [
    ['Workflow', html`${name} ${workflowVersion}`],
    ['Queued by', queuer],
    ['Queued', moment(run.createdAt, 'exact')],
    ...(run.availableAt !== null && run.startedAt === null
      ? [['Not before', moment(run.availableAt, 'exact')] as [string, Html]]
      : []),
    ['Started', moment(run.startedAt, 'exact', 'not yet')],
    ['Finished', moment(run.finishedAt, 'exact', 'not yet')],
    ['Duration', runDuration(run)],
    [
      'Attempts',
      workflow && workflow.retry.maxAttempts > 1
        ? `${run.attempts} of up to ${workflow.retry.maxAttempts}`
        : `${run.attempts}`,
    ],
    ...(run.priority === 0 ? [] : [['Priority', `${run.priority}`] as [string, string]]),
    ...contextFacts(run, context),
    ...(run.expiresAt === null ? [] : [['Expires if not started', moment(run.expiresAt, 'exact')] as [string, Html]]),
  ]
  return html`<section class="card">${facts(entries)}</section>`
}

function contextFacts(run: Run, context: BrowserContext | undefined): [string, Html | string][] {
  const { browserContextId, persistContext } = run
  if (browserContextId === null) return []
  const link = context ? contextLink(context) : html`<span class="muted">a deleted one</span>`
  return [
    ['Browser context', link],
    ['Kept in it', persistWords[persistContext ?? 'never']],
  ]
}

/** Longer JSON is read with the command below it. */
const jsonLengthMax = 50_000

function jsonPart(id: string, title: string, value: unknown, { run, executionUrl }: ShownRun): Html {
  const text = JSON.stringify(value, null, 2)
  const rest =
    text.length > jsonLengthMax &&
    html`<p>Only its beginning is shown. All of it:</p>
    ${copyable(`${id}-command`, readCommand(executionUrl, run.id), { label: 'Copy command' })}`
  return html`<section class="card"><h2>${title}</h2>${copyable(id, text.slice(0, jsonLengthMax))}${rest || nothing}</section>`
}

export function cancelView(run: Run, workflow: Workflow | undefined): Html {
  const { id, status, workflowId } = run
  const title = workflow?.title ?? workflowId
  const what =
    status === 'running'
      ? 'It is asked to end, and its process is ended when it does not do so in time. What it has done so far is not undone.'
      : 'It has not started, and will not.'
  return html`${trail(`/runs/${id}`, title)} ${heading('Cancel this run?')}
    <form method="post" class="card">
      <p>${what} This cannot be undone, but you can run it again.</p>
      <p>${statusBadge(run)} ${title} <code>${shortId(id)}</code></p>
      <div class="buttons"><button class="danger">Cancel the run</button><a href="/runs/${id}">Keep it</a></div>
    </form>`
}
