/** How the dashboard says what a run's status, reasons and times mean. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { RunReason, RunStatus } from '../../../domain/runs/run-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { badge, moment, type Tone } from '../elements.ts'
import { type Html, html } from '../html.ts'

const looks: Record<RunStatus, { tone: Tone; word: string }> = {
  queued: { tone: 'waiting', word: 'queued' },
  running: { tone: 'busy', word: 'running' },
  succeeded: { tone: 'good', word: 'succeeded' },
  failed: { tone: 'bad', word: 'failed' },
  timedOut: { tone: 'bad', word: 'timed out' },
  cancelled: { tone: 'quiet', word: 'cancelled' },
  expired: { tone: 'warning', word: 'expired' },
}

export const runStatuses = Object.keys(looks) as RunStatus[]

export function statusWord(status: RunStatus): string {
  return looks[status].word
}

export function statusBadge({ status, cancelRequested }: Pick<Run, 'status' | 'cancelRequested'>): Html {
  const { tone, word } = looks[status]
  return badge(tone, status === 'running' && cancelRequested ? 'cancelling' : word)
}

/** A run's times begin with its id, so that its end tells runs of the same minute apart. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`
}

/** Leads to a run of which no more is known than its id. */
export function runLink(id: string, word: 'Run' | 'run' = 'run'): Html {
  return html`<a class="unbroken" href="/runs/${id}">${word} <code>${shortId(id)}</code></a>`
}

/** What a queued run waits for, in a few words. */
export function waitsBriefly({ waitingFor, availableAt, reason }: Run): Html | undefined {
  if (waitingFor === null) return undefined
  if (waitingFor === 'worker') return html`for a worker`
  if (waitingFor === 'concurrencyLimit') return html`for its concurrency limit`
  if (waitingFor === 'browserContext') return html`for its browser context`
  return reason === 'attemptFailed' ? html`next attempt ${moment(availableAt)}` : html`starts ${moment(availableAt)}`
}

/**
 * Why a queued run does not run yet, in a sentence or two.
 *
 * @param workers how many live now.
 * @param context the run's browser context, when it has one that was not deleted.
 */
export function waitsBecause(
  run: Run,
  workflow: Workflow | undefined,
  workers: number,
  context: BrowserContext | undefined,
): Html | undefined {
  const { waitingFor, reason, attempts, availableAt } = run
  if (waitingFor === null) return undefined
  const again = {
    attemptFailed: html`Attempt ${attempts} failed. `,
    workerStopped: html`The worker of attempt ${attempts} stopped and handed the run back. `,
    workerLost: html`The worker of attempt ${attempts} was lost. `,
  }
  const before = reason !== null && reason in again ? again[reason as keyof typeof again] : ''
  if (waitingFor === 'delay') {
    return before ? html`${before}The next one starts ${moment(availableAt)}.` : html`It starts ${moment(availableAt)}.`
  }
  if (waitingFor === 'concurrencyLimit')
    return html`${before}It waits until another run of its workflow ends: ${limitWords(workflow)}.`
  if (waitingFor === 'browserContext') return html`${before}${waitsForContext(context)}`
  if (!workflow) return html`${before}Its workflow is not installed any more, so that no worker takes it.`
  if (workers === 0) return html`${before}No worker is running that could take it.`
  return html`${before}It waits for a worker with a free slot.`
}

function waitsForContext(context: BrowserContext | undefined): Html {
  if (!context) return html`Its browser context was deleted while it waited for it; it starts without one.`
  const { heldByRunId } = context
  const link = html`<a href="/browser-contexts/${context.id}">${context.name}</a>`
  if (heldByRunId === null) return html`It is about to get its browser context, ${link}.`
  return html`It waits for its browser context, ${link}, which ${runLink(heldByRunId)} holds.`
}

function limitWords(workflow: Workflow | undefined): string {
  const limit = workflow?.concurrencyLimit ?? 1
  return limit === 1 ? 'one may run at a time' : `${limit} may run at the same time`
}

/** Why an attempt or a run ended as it did, where the status alone does not say it. */
export const reasonWords: Record<RunReason, string> = {
  attemptFailed: 'The workflow failed; another attempt is allowed.',
  workerStopped: 'Its worker stopped and handed the run back.',
  workerLost: 'Its worker was lost.',
  workflowFailed: 'The workflow threw an error.',
  workflowExited: 'The process of the workflow ended before the workflow did.',
  contextNotSaved: 'What its browser held could not be saved: its browser context is as it was before.',
  outputInvalid: 'What the workflow returned does not fit its output schema.',
  timeLimit: 'The attempt took longer than the time limit of the workflow.',
  cancelRequested: 'Somebody cancelled it.',
  notStartedInTime: 'It had not started when its time to start was over.',
}

/** How a finished run ended, in a sentence. */
export function endedBecause({ status, reason, attempts }: Run): string | undefined {
  if (reason === null) return undefined
  if (status === 'failed' && reason === 'workerLost')
    return 'Its workers were lost too often; it may be what ends them.'
  if (status === 'failed' && attempts > 1) return `${reasonWords[reason]} It was attempt ${attempts}, the last one.`
  return reasonWords[reason]
}

const secondMilliseconds = 1000
const minuteMilliseconds = 60 * secondMilliseconds
const units: [name: string, milliseconds: number][] = [
  ['d', 24 * 60 * minuteMilliseconds],
  ['h', 60 * minuteMilliseconds],
  ['m', minuteMilliseconds],
  ['s', secondMilliseconds],
]

/** Such as `85ms`, `2.4s`, `3m 20s`, `2d 4h`. */
export function durationWords(milliseconds: number): string {
  if (milliseconds < secondMilliseconds) return `${Math.max(0, Math.round(milliseconds))}ms`
  if (milliseconds < minuteMilliseconds) return `${Math.floor(milliseconds / 100) / 10}s`
  const first = units.findIndex(([, each]) => milliseconds >= each)
  let rest = milliseconds
  const words = units.slice(first, first + 2).map(([name, each]) => {
    const count = Math.floor(rest / each)
    rest -= count * each
    return count === 0 ? '' : `${count}${name}`
  })
  return words.filter(Boolean).join(' ')
}

/** How long a run has taken, or takes so far, which goes on in the reader's browser. */
export function runDuration({ startedAt, finishedAt }: Pick<Run, 'startedAt' | 'finishedAt'>): Html | string {
  if (startedAt === null) return '–'
  return finishedAt === null ? elapsedSince(startedAt) : durationWords(finishedAt - startedAt)
}

export function elapsedSince(at: number): Html {
  const iso = new Date(at).toISOString()
  const now = durationWords(Date.now() - at)
  return html`<relative-time datetime="${iso}" format="duration" format-style="narrow" tense="past" no-title>${now}</relative-time>`
}
