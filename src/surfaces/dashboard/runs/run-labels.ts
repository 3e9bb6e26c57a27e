/** How pages describe a run: status, who queued it, why it waits and why it ended. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Wait } from '../../../domain/run-api/waits.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { RunReason, RunStatus } from '../../../domain/runs/run-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { WaitKind } from '../../../storage/tables/run-tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { elapsedSince, formatDuration, time } from '../format.ts'
import { badge, type Html, html, type Tone } from '../html.ts'

const statusBadges: Record<RunStatus, { tone: Tone; label: string }> = {
  queued: { tone: 'waiting', label: 'Queued' },
  running: { tone: 'busy', label: 'Running' },
  waiting: { tone: 'waiting', label: 'Waiting' },
  succeeded: { tone: 'good', label: 'Succeeded' },
  failed: { tone: 'bad', label: 'Failed' },
  timedOut: { tone: 'bad', label: 'Timed out' },
  cancelled: { tone: 'quiet', label: 'Cancelled' },
  expired: { tone: 'warning', label: 'Expired' },
}

export const statusOptions = Object.entries(statusBadges).map(([value, { label }]) => ({
  value: value as RunStatus,
  title: label,
}))

type RunState = Pick<Run, 'status' | 'cancelRequested'>

const waitKinds = ['sleep', 'answer', 'run'] as const satisfies WaitKind[]

/** What a run that has left its worker waits for. */
export function waitKindOf({ waitingFor }: Partial<Pick<Run, 'waitingFor'>>): WaitKind | undefined {
  return waitKinds.find((kind) => kind === waitingFor)
}

export function describeStatus({ status, cancelRequested }: RunState): { tone: Tone; label: string } {
  const { tone, label } = statusBadges[status]
  return { tone, label: status === 'running' && cancelRequested ? 'Cancelling' : label }
}

export function runBadge(run: RunState): Html {
  const { tone, label } = describeStatus(run)
  return badge(tone, label)
}

/** The end of the id: ids begin with a time, so those of the same minute differ only at the end. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`
}

export function runLink(id: string, label: 'Run' | 'run' = 'run'): Html {
  return html`<a class="unbroken" href="/runs/${id}">${label} <code>${shortId(id)}</code></a>`
}

export type QueuerLabel = (run: Pick<Run, 'apiKeyId' | 'userId'> & Partial<Pick<Run, 'scheduleId'>>) => Html

/** Names the API key, the user or the schedule that queued a run of the account. */
export async function readQueuerLabels({ apiKeys, users }: Dependencies, accountId: string): Promise<QueuerLabel> {
  const [keys, userNames] = await Promise.all([apiKeys.list(accountId), users.names(accountId)])
  const keyNames = new Map(keys.map(({ id, name }) => [id, name]))
  return ({ apiKeyId, userId, scheduleId = null }) => {
    if (userId !== null) return html`${userNames.get(userId) ?? html`<span class="muted">removed user</span>`}`
    if (apiKeyId === null && scheduleId !== null) return html`<a href="/schedules/${scheduleId}">schedule</a>`
    if (apiKeyId === null) return html`<span class="muted">sign-in</span>`
    const name = keyNames.get(apiKeyId ?? '')
    return name === undefined
      ? html`<span class="muted">deleted key</span>`
      : html`<span><span class="muted">key</span> ${name}</span>`
  }
}

export function describeWaitBriefly({ waitingFor, availableAt, reason }: Run): Html | undefined {
  if (waitingFor === null) return undefined
  if (waitingFor === 'worker') return html`waiting for a worker`
  if (waitingFor === 'concurrencyLimit') return html`concurrency limit reached`
  if (waitingFor === 'throttle') return html`rate reached`
  if (waitingFor === 'sleep') return html`sleeps`
  if (waitingFor === 'answer') return html`waiting for an answer`
  if (waitingFor === 'run') return html`waiting for a run that it has called`
  if (waitingFor === 'browserContext') return html`waiting for its browser context`
  if (waitingFor === 'signIn') return html`waiting for its browser context to be signed in`
  if (waitingFor === 'secret' || waitingFor === 'setting') return html`waiting for a ${waitingFor}`
  return html`${reason === 'attemptFailed' ? 'retries' : 'starts'} ${time(availableAt)}`
}

// Waits of runs that have left their worker.

export function waitPath({ runId, name }: Pick<Wait, 'runId' | 'name'>): string {
  return `/runs/${runId}/waits/${encodeURIComponent(name)}`
}

export function titleOf({ title, name }: Pick<Wait, 'title' | 'name'>): string {
  return title ?? `Answer “${name}”`
}

/** What a waiting run waits for: of several waits, the one that needs something from outside. */
function describeRunWait(waitingFor: WaitKind, waits: readonly Wait[]): Html {
  const open = waits.filter(({ kind, status }) => kind === waitingFor && status === 'open')
  const [first] = open
  if (!first) return html`Waiting.`
  const since = html`since ${time(first.reachedAt)}`
  if (waitingFor === 'sleep') return html`Sleeping until ${time(first.deadline)}.`
  if (waitingFor === 'answer') {
    const link = html`<a href="${waitPath(first)}">${titleOf(first)}</a>`
    return html`Waiting for an answer to ${link}, ${since}, until ${time(first.deadline)}.`
  }
  if (open.length > 1) return html`Waiting for ${open.length} runs that it has called, ${since}.`
  return html`Waiting for ${runLink(first.calledRunId ?? '')}, which it has called, ${since}.`
}

interface WaitCircumstances {
  /** `undefined` when it is no longer deployed. */
  workflow: Workflow | undefined
  workers: number
  /** The run's browser context, unless it was deleted. */
  context: BrowserContext | undefined
  waits: readonly Wait[]
}

export function describeWait(run: Run, { workflow, workers, context, waits }: WaitCircumstances): Html | undefined {
  const { waitingFor, deploymentId, reason, attempts, availableAt } = run
  const message = run.waitingForDetail?.message ?? null
  if (waitingFor === null) return undefined
  const kind = waitKindOf(run)
  if (kind) return describeRunWait(kind, waits)
  const endings: { [Key in RunReason]?: string } = {
    attemptFailed: `Attempt ${attempts} failed. `,
    workerStopped: `The worker of attempt ${attempts} shut down. `,
    workerLost: `The worker of attempt ${attempts} stopped responding. `,
  }
  if (waitingFor === 'deployment') {
    const deployment =
      deploymentId === null ? 'its deployment' : html`deployment <code>${deploymentId.slice(0, 12)}</code>`
    return html`Waiting for ${deployment}, which the worker could not get: ${message} The next try is ${time(availableAt)}.`
  }
  if (waitingFor === 'secret' || waitingFor === 'setting')
    return html`Waiting for a ${waitingFor}: ${message} <a href="/settings/secrets">Secrets and settings</a>`
  const previous = (reason && endings[reason]) ?? ''
  if (waitingFor === 'delay') {
    return html`${previous}${previous ? 'The next attempt starts' : 'Starts'} ${time(availableAt)}.`
  }
  if (waitingFor === 'concurrencyLimit') {
    const [first = '', ...rest] = message ?? 'There is a limit of concurrent runs.'
    return html`${previous}Waiting for another run to finish: ${first.toLowerCase()}${rest.join('')}`
  }
  if (waitingFor === 'throttle') return html`${previous}Waiting for the rate of the workflow. ${message ?? ''}`
  if (waitingFor === 'browserContext') return html`${previous}${describeContextWait(context)}`
  if (waitingFor === 'signIn') return describeSignInWait(context)
  // Runs of deployed workflows are executed although their workflow was removed.
  if (!workflow && deploymentId === null) {
    return html`${previous}This workflow is no longer deployed, so no worker can run it.`
  }
  if (message !== null) return html`${previous}${message}`
  return html`${previous}${workers === 0 ? 'No workers are running.' : 'Waiting for a free worker slot.'}`
}

function describeContextWait(context: BrowserContext | undefined): Html {
  if (!context) return html`Its browser context was deleted. The run starts without one.`
  const { heldByRunId } = context
  const link = html`<a href="/browser-contexts/${context.id}">${context.name}</a>`
  if (heldByRunId === null) return html`Its browser context, ${link}, is free again. The run starts shortly.`
  return html`Waiting for its browser context, ${link}, which ${runLink(heldByRunId)} is using.`
}

function describeSignInWait(context: BrowserContext | undefined): Html {
  if (!context?.signIn) return html`Its browser context has no sign-in any more. The run goes on shortly.`
  const { id, name, signIn } = context
  const wait = html`Waiting for the sign-in of <a href="/browser-contexts/${id}">${name}</a>`
  if (signIn.status === 'needsSignIn')
    return html`${wait}, which needs a person since ${time(signIn.needsSignInSince, 'short')}.`
  return signIn.runId === null ? html`${wait}.` : html`${wait}, which ${runLink(signIn.runId)} does.`
}

export const reasonLabels: Record<RunReason, string> = {
  attemptFailed: 'The workflow failed. The run is retried.',
  workerStopped: 'The worker shut down and returned the run to the queue.',
  workerLost: 'The worker stopped responding.',
  workflowFailed: 'The workflow threw an error.',
  nonRetryable: 'The workflow threw an error that ends its retries.',
  workflowExited: 'The process exited before the workflow finished.',
  contextNotSaved: 'The browser state could not be saved. The browser context is unchanged.',
  outputInvalid: 'The output is too large or does not match the workflow’s output schema.',
  timeLimit: 'The attempt exceeded the workflow’s time limit.',
  cancelRequested: 'Cancelled by a user or an API key.',
  waiting: 'The run waits.',
  notStartedInTime: 'The run expired before it started.',
  needsSignIn: 'The run expired while its browser context needed a person to sign in.',
}

/** Why a finished run ended as it did; `undefined` when the status says it all. */
export function describeEnd({ status, reason, attempts }: Run): string | undefined {
  if (reason === null) return undefined
  if (status === 'failed' && reason === 'workerLost') {
    return 'The worker stopped responding on every attempt. The workflow may crash its worker.'
  }
  if (status === 'failed' && attempts > 1) return `${reasonLabels[reason]} Attempt ${attempts} was the last.`
  return reasonLabels[reason]
}

/** The duration of a run, which the browser keeps counting while it runs. */
export function renderRunDuration({ startedAt, finishedAt }: Pick<Run, 'startedAt' | 'finishedAt'>): Html | string {
  if (startedAt === null) return '–'
  return finishedAt === null ? elapsedSince(startedAt) : formatDuration(finishedAt - startedAt)
}
