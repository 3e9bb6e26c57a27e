/** Templates of the page of a run, its cancellation and its deletion. */
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { StoredFile } from '../../../domain/files/files.ts'
import type { History } from '../../../domain/run-api/runs.ts'
import type { Wait } from '../../../domain/run-api/waits.ts'
import type { Run, RunEvent } from '../../../domain/runs/run.ts'
import { type AttemptError, isFinal, type RunError } from '../../../domain/runs/run-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { contextLink, persistLabels } from '../browser-contexts/context-pages.ts'
import { elapsedSince, formatBytes, formatDuration, time } from '../format.ts'
import {
  attribute,
  backLink,
  badge,
  copyable,
  copyableId,
  type Fact,
  facts,
  type Html,
  heading,
  html,
  nothing,
  notice,
  type Tone,
} from '../html.ts'
import { renderLiveView } from '../live-view/live-view-template.ts'
import { may } from '../page-roles.ts'
import { renderRunWaits } from '../waits/wait-pages.ts'
import { eventsCommand, readCommand } from '../workflows/curl-commands.ts'
import { optionFacts } from '../workflows/queue-options.ts'
import { renderArtifacts } from './run-artifacts.ts'
import type { Attempt, Step } from './run-attempts.ts'
import { type BrowserReport, renderEvidence } from './run-evidence.ts'
import { renderFiles } from './run-files.ts'
import {
  describeEnd,
  describeWait,
  type QueuerLabel,
  reasonLabels,
  renderRunDuration,
  runBadge,
  shortId,
} from './run-labels.ts'

interface RunPage {
  run: Run
  /** The first ones. */
  waits: readonly Wait[]
  history: History
  attempts: Attempt[]
  report: BrowserReport | undefined
  /** `undefined` when it is no longer deployed. */
  workflow: Workflow | undefined
  queuerLabel: QueuerLabel
  /** The tree of the runs above and below. */
  calls: Html | ''
  /** `undefined` unless the run was cancelled by a known key or user. */
  canceller: Html | undefined
  /** `undefined` when the run has none, or it was deleted. */
  context: BrowserContext | undefined
  workers: number
  /** Of its variables. */
  files: readonly StoredFile[]
  /** The user of the page. */
  user: User
  executionUrl: string
  done: string
  /** The button that follows the run. */
  following: Html | ''
  followNotice: Html | ''
}

export function renderRun(page: RunPage): Html {
  const { run, history, attempts, workflow, executionUrl, done, user } = page
  const { id, workflowId, status } = run
  const last = history.events.at(-1)?.sequence ?? 0
  const live = isFinal(status) ? nothing : html`data-live="/runs/${id}/changes?after=${last}"`
  const wasFinished = done === 'finished' && isFinal(status)
  const isUnfinished = done === 'unfinished' && !isFinal(status)
  const again = html`<a class="button secondary" href="/workflows/${workflowId}?from=${id}">Run again</a>`
  const cancel = html`<a class="button secondary danger" href="/runs/${id}/cancel">Cancel run</a>`
  const remove = html`<a class="button secondary danger" href="/runs/${id}/delete">Delete run</a>`
  const removeIfMay = may(user, 'POST /runs/:id/delete') ? remove : nothing
  const cancelIfMay = may(user, 'POST /runs/:id/cancel') && !run.cancelRequested ? cancel : nothing
  const againIfMay = workflow && may(user, 'POST /workflows/:id') ? again : nothing
  const actions = html`${page.following} ${againIfMay} ${isFinal(status) ? removeIfMay : cancelIfMay}`
  // Of a failed run, what it shows comes before its facts, so that both are on the first screen of a phone, too.
  const hasFailed = status === 'failed' || status === 'timedOut'
  const evidence = renderEvidence(run, page.report)
  return html`${backLink('/runs', 'Runs')}
    ${wasFinished ? notice('warning', 'This run had already finished, so it was not cancelled.') : nothing}
    ${page.followNotice}
    ${isUnfinished ? notice('warning', 'This run has not finished. Cancel it before you delete it.') : nothing}
    <div id="run" ${live}>
      <div id="run-status" role="status" aria-live="polite">${runBadge(run)}</div> ${heading(workflow?.title ?? workflowId, { lead: copyableId('run-id', id, 'Copy run ID'), actions })}
      ${renderState(page)} ${renderProgress(run)} ${workflow?.usesBrowser && !isFinal(status) ? renderLiveView(id, user) : nothing}
      <div class="with-rail">
        ${hasFailed ? nothing : renderRail(page)}
        <div>
          ${hasFailed ? evidence : nothing} ${renderTimeline(run, attempts, history.othersOmitted)}
          ${renderRunWaits(page.waits, page.queuerLabel)} ${page.calls}
          ${hasFailed ? nothing : evidence} ${renderFiles(page.files)} ${renderArtifacts(run)} ${renderLog(run, history, executionUrl)}
          <div class="pair">
            ${renderJson('variables', 'Variables', run.variables, page)}
            ${status === 'succeeded' ? renderJson('output', 'Output', run.output, page) : nothing}
          </div>
        </div>
        ${hasFailed ? renderRail(page) : nothing}
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
    const hasNoWorker = workers === 0 || (run.waitingFor === 'worker' && run.waitingForDetail !== null)
    return notice(hasNoWorker ? 'warning' : 'quiet', html`${wait}${expiry || nothing}`)
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
    const last = page.attempts.at(-1)?.error
    const shown = last ?? error
    return notice(
      'bad',
      html`${end} ${shown ? renderErrorMessage(shown) : nothing} ${last ? renderFailedStep(last) : nothing}`,
    )
  }
  return end ? notice('quiet', end) : nothing
}

/** What a running run does now. */
function renderRunningStep(attempt: Attempt | undefined): Html | '' {
  const step = attempt?.steps.findLast(({ state }) => state === 'running')
  if (!step) return nothing
  return html`<p class="muted">Running step <strong>${step.name}</strong>, which started ${time(step.startedAt)}.</p>`
}

function renderProgress({ progress, status, waitingFor }: Run): Html | '' {
  if (!progress || status === 'succeeded' || waitingFor !== null) return nothing
  const percent = Math.round(progress.percent)
  return html`<div class="progress">
    <label for="progress">${progress.message ?? 'Progress'}</label> <span>${percent}%</span>
    <progress id="progress" value="${percent}" max="100"></progress>
  </div>`
}

function runFacts({ run, queuerLabel, workflow, context }: RunPage): { main: Fact[]; details: Fact[] } {
  const { workflowId, attempts } = run
  const id = html`<code>${workflowId}</code>`
  const maxAttempts = workflow?.retry.maxAttempts ?? 1
  const waitsForValue = run.waitingFor === 'secret' || run.waitingFor === 'setting'
  const isScheduled = run.availableAt !== null && run.startedAt === null && !waitsForValue
  const persist = persistLabels[run.persistContext ?? 'never']
  const main: (Fact | false)[] = [
    ['Workflow', workflow ? html`<a href="/workflows/${workflowId}">${id}</a>` : id],
    ['Duration', renderRunDuration(run)],
    ['Attempts', maxAttempts > 1 ? `${attempts} of ${maxAttempts}` : `${attempts}`],
    ['Queued by', queuerLabel(run)],
    run.parentRunId !== null && [
      'Called by',
      html`<a href="/runs/${run.parentRunId}"><code>${shortId(run.parentRunId)}</code></a>`,
    ],
    run.rerunOf !== null && ['Repeats', html`<a href="/runs/${run.rerunOf}"><code>${shortId(run.rerunOf)}</code></a>`],
    ...optionFacts(run),
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
      : `The run will not ${status === 'waiting' ? 'go on' : 'start'}.`
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

// Template of a run's log. Each line shows the seconds since the run started.

function renderLog(run: Run, { events, logsOmitted }: History, executionUrl: string): Html {
  const lines = events.filter(({ type }) => type === 'log' || type === 'artifact')
  const empty = isFinal(run.status) ? 'No log messages.' : 'No log messages yet.'
  const omitted = `${logsOmitted.toLocaleString('en')} earlier ${logsOmitted === 1 ? 'line is' : 'lines are'} not shown.`
  return html`<section class="card">
    <h2>Log</h2>
    ${logsOmitted > 0 ? html`<p class="muted">${omitted}</p>` : nothing}
    ${lines.length === 0 ? html`<p class="muted">${empty}</p>` : renderLines(run, lines)}
    <details>
      <summary>Follow all events with curl</summary>
      ${copyable('events-command', eventsCommand(executionUrl, run.id), { label: 'Copy command' })}
    </details>
  </section>`
}

function renderLines(run: Run, events: RunEvent[]): Html {
  const start = run.startedAt ?? run.createdAt
  let attempt: unknown
  const lines = events.map(({ type, at, data }) => {
    const isNewAttempt = run.attempts > 1 && data.attempt !== attempt
    attempt = data.attempt
    const level = type === 'artifact' ? 'info' : String(data.level)
    const text =
      type === 'artifact'
        ? html`Created artifact ${String(data.name)}, ${formatBytes(Number(data.sizeBytes))}`
        : String(data.message)
    return html`${isNewAttempt ? html`<li class="divider">Attempt ${Number(data.attempt)}</li>` : nothing}<li class="${level}">
      <time datetime="${new Date(at).toISOString()}">+${(Math.max(0, at - start) / 1000).toFixed(3)}</time>
      ${level === 'info' ? nothing : html`<strong>${level}</strong>`}
      <span>${text}</span>
    </li>`
  })
  return html`<div class="log" tabindex="0" role="group" aria-label="Log lines"><ol>${lines}</ol></div>`
}

// Template of a run's timeline: its attempts with their errors and steps.

function renderTimeline(run: Run, attempts: Attempt[], stepsOmitted: number): Html {
  const { createdAt, finishedAt, status } = run
  const items = attempts.map((attempt) => {
    // The page begins with the error of a failed run.
    const isShownAbove = isFinal(status) && status !== 'cancelled' && attempt.number === run.attempts
    return renderTimelineAttempt(attempt, attempts.length > 1 || attempt.endedAt === null, isShownAbove)
  })
  const finished = finishedAt !== null && html`<li class="muted">Finished ${time(finishedAt, 'exact')}</li>`
  return html`<section class="card">
    <h2>Timeline</h2>
    ${stepsOmitted > 0 ? html`<p class="muted">The ${stepsOmitted} oldest steps are not shown.</p>` : nothing}
    <ol class="timeline">
      <li class="muted">Queued ${time(createdAt, 'exact')}</li>
      ${items} ${finished || nothing}
    </ol>
  </section>`
}

function renderTimelineAttempt(attempt: Attempt, showReason: boolean, isErrorShownAbove: boolean): Html {
  const { number, startedAt, endedAt, reason, steps } = attempt
  const duration =
    endedAt === null ? html`for ${elapsedSince(startedAt)}` : html`after ${formatDuration(endedAt - startedAt)}`
  return html`<li id="attempt-${number}">
    <h3>Attempt ${number} ${badge(...outcomeBadge(attempt))} <small>${time(startedAt, 'exact')}, ${duration}</small></h3>
    ${showReason && reason !== null ? html`<p class="muted">${reasonLabels[reason]}</p>` : nothing}
    ${renderError(attempt, isErrorShownAbove)} ${steps.length === 0 ? nothing : renderSteps(attempt)}
  </li>`
}

/** Playwright appends what it waited for, which is longer than the error. */
function renderErrorMessage({ name, message }: RunError): Html {
  const [headline = '', ...calls] = message.split(/\nCall log:\n/)
  const callLog = html`<details class="call-log"><summary>Call log</summary><pre tabindex="0" aria-label="Call log"><code>${calls.join('\n')}</code></pre></details>`
  return html`<p class="error-message"><strong>${name}</strong> ${headline.trimEnd()}</p>${calls.length === 0 ? nothing : callLog}`
}

function renderFailedStep({ step }: AttemptError): Html | '' {
  return step === null ? nothing : html`<p class="failed-step">In step <strong>${step}</strong></p>`
}

function renderError({ number, error }: Attempt, isShownAbove: boolean): Html | '' {
  if (!error) return nothing
  const { stack } = error
  return html`${isShownAbove ? nothing : html`${renderErrorMessage(error)} ${renderFailedStep(error)}`}
    ${
      stack === null
        ? nothing
        : html`<details id="stack-${number}" class="error-stack" open>
      <summary>Stack</summary>
      <pre tabindex="0" aria-label="Stack of attempt ${number}"><code>${stack}</code></pre>
    </details>`
    }`
}

function outcomeBadge({ endedAt, next, reason, isWaiting }: Attempt): [tone: Tone, label: string] {
  if (isWaiting) return ['waiting', 'Waiting']
  if (endedAt === null) return ['busy', 'Running']
  if (next === 'succeeded') return ['good', 'Succeeded']
  if (next === 'timedOut') return ['bad', 'Timed out']
  if (next === 'cancelled') return ['quiet', 'Cancelled']
  if (reason === 'workerStopped') return ['quiet', 'Requeued']
  if (reason === 'workerLost') return ['warning', 'Worker lost']
  return ['bad', 'Failed']
}

// Template of an attempt's steps: how many there are, and each as a bar. Steps that differ in a number are a group.

type State = Step['state']

const stateTones = {
  running: 'busy',
  waiting: 'waiting',
  finished: 'good',
  failed: 'bad',
  reused: 'good',
  interrupted: 'waiting',
}
const stateNotes = {
  running: '',
  waiting: 'waiting',
  finished: '',
  failed: 'failed',
  reused: 'reused',
  interrupted: 'interrupted',
}

/** Fewer steps of one kind are shown one by one. */
const groupSizeMin = 5

/** In order; groups of consecutive steps such as `page 1`, `page 2` and `page 3`. */
export function groupSteps(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = []
  let kind: string | undefined
  for (const step of steps) {
    const last = groups.at(-1)
    const next = step.name.replace(/\d+/g, '#')
    if (last && next === kind && next !== step.name) last.push(step)
    else groups.push([step])
    kind = next
  }
  return groups.flatMap((group) => (group.length < groupSizeMin ? group.map((step) => [step]) : [group]))
}

/** For example `12 steps: 10 finished, 1 failed, 1 running`. */
export function countSteps(steps: readonly Step[]): string {
  const counts = (Object.keys(stateTones) as State[]).map((state): [State, number] => [
    state,
    steps.filter((step) => step.state === state).length,
  ])
  const parts = counts.filter(([, count]) => count > 0).map(([state, count]) => `${count} ${state}`)
  return `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}: ${parts.join(', ')}`
}

/** The list is scrolled to its end unless the attempt has succeeded: there is the step that runs or has failed. */
function renderSteps(attempt: Attempt): Html {
  const { number, startedAt, endedAt, steps, next } = attempt
  const end = endedAt ?? Date.now()
  const title = `Steps of attempt ${number}`
  const tables: Html[] = []
  let rows: Step[] = []
  const addTable = () => {
    if (rows.length > 0) tables.push(renderTable(rows, title, startedAt, end))
    rows = []
  }
  for (const group of groupSteps(steps)) {
    if (group.length === 1) rows.push(...group)
    else {
      addTable()
      tables.push(renderGroup(group, number, startedAt, end))
    }
  }
  addTable()
  return html`<p class="muted">${countSteps(steps)}</p>
    <div class="steps ${next === 'succeeded' ? '' : 'to-end'}" tabindex="0" role="group" aria-label="${title}"><div>${tables}</div></div>`
}

function renderGroup(group: Step[], attempt: number, from: number, until: number): Html {
  const [first, last] = [group[0] as Step, group.at(-1) as Step]
  const isNotable = group.some(({ state }) => state === 'running' || state === 'failed')
  const title = `${first.name} … ${last.name.split(/(?<=\D)(?=\d)/).at(-1)}`
  const length = last.endedAt === null ? elapsedSince(first.startedAt) : formatDuration(last.endedAt - first.startedAt)
  return html`<details id="${`steps-${attempt}-${first.name.replaceAll(/[^\w-]/g, '_')}`}" ${attribute('open', isNotable)}>
    <summary>${title} <span class="muted">· ${countSteps(group)} · ${length}</span></summary>
    ${renderTable(group, title, from, until)}
  </details>`
}

function renderTable(steps: readonly Step[], title: string, from: number, until: number): Html {
  const rows = steps.map((step) => {
    const duration =
      step.endedAt === null ? html`for ${elapsedSince(step.startedAt)}` : formatDuration(step.endedAt - step.startedAt)
    const note = stateNotes[step.state]
    return html`<tr>
      <th scope="row">${step.name}</th>
      <td class="bar">${renderBar(step, from, until)}</td>
      <td class="number">+${formatDuration(step.startedAt - from)}</td>
      <td class="number">${duration}${note ? html` <span class="${step.state}">${note}</span>` : nothing}</td>
    </tr>`
  })
  return html`<table>
    <caption class="unseen">${title}</caption>
    <colgroup><col class="name" /><col /><col class="start" /><col class="duration" /></colgroup>
    <thead class="unseen"><tr><th scope="col">Step</th><td></td><th scope="col">Start</th><th scope="col">Duration</th></tr></thead>
    <tbody>${rows}</tbody>
  </table>`
}

/** Width of an attempt's bar, in SVG units. */
const width = 1000
const barWidthMin = 6

/** An SVG, because the Content-Security-Policy allows no `style` attributes. */
function renderBar({ state, startedAt, endedAt }: Step, from: number, until: number): Html {
  const span = Math.max(1, until - from)
  const position = (at: number) => Math.round((Math.min(Math.max(0, at - from), span) / span) * width)
  const x = Math.min(position(startedAt), width - barWidthMin)
  const length = Math.max(barWidthMin, position(endedAt ?? until) - x)
  return html`<svg viewBox="0 0 ${width} 10" preserveAspectRatio="none" aria-hidden="true">
    <rect width="${width}" height="10" /><rect class="${stateTones[state]}" x="${x}" width="${length}" height="10" />
  </svg>`
}
