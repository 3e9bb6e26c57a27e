/** Templates of the state of a browser context's sign-in, of its history, and of the banners of those that need a person. */
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { NeededSignIn, SignIn, SignInEntry } from '../../../domain/browser-contexts/sign-ins.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { SignInCause, SignInStatus } from '../../../storage/tables/tables.ts'
import { formatDuration, time } from '../format.ts'
import { badge, type Fact, facts, type Html, html, nothing, notice, type Tone, table } from '../html.ts'
import { may } from '../page-roles.ts'
import { runLink } from '../runs/run-labels.ts'

export const guide = html`<a href="/docs/sign-ins">How sign-ins work</a>`

const statusBadges: Record<SignInStatus, [tone: Tone, text: string]> = {
  unknown: ['quiet', 'Not checked'],
  signedIn: ['good', 'Signed in'],
  signingIn: ['busy', 'Signing in'],
  needsSignIn: ['bad', 'Needs a sign-in'],
}

export function signInBadge({ status }: Pick<SignIn, 'status'>): Html {
  return badge(...statusBadges[status])
}

export interface ShownSignIn extends SignIn {
  /** Newest first. */
  history: readonly SignInEntry[]
}

/** The section of a context's page; `signIn` is `undefined` unless one was set. */
export function renderSignIn(
  { id }: BrowserContext,
  signIn: ShownSignIn | undefined,
  workflows: readonly Workflow[],
  user: User,
): Html {
  const path = `/browser-contexts/${id}/sign-in`
  if (!signIn) {
    const setUp = html`<a class="button secondary" href="${path}">Set up sign-in</a>`
    return html`<section class="card">
      <div class="form-head"><h2>Sign-in</h2>${may(user, 'GET /browser-contexts/:id/sign-in') ? setUp : nothing}</div>
      <p class="muted">With a sign-in, a run that finds its session ended waits until a workflow has signed in again. ${guide}</p>
    </section>`
  }
  return html`<section class="card">
      <div class="form-head"><h2>Sign-in</h2><div class="actions">${renderActions(path, signIn, user)}</div></div>
      ${renderNeeded(signIn)}
      ${facts(signInFacts(signIn, workflows))}
    </section>
    ${renderHistory(signIn.history)}`
}

function renderActions(path: string, signIn: ShownSignIn, user: User): Html {
  const now = html`<form method="post" action="${path}/now"><button class="secondary">Sign in now</button></form>`
  const person = isByHand(signIn)
    ? html`<a class="button" href="${path}/by-hand">Continue by hand</a>`
    : html`<form method="post" action="${path}/by-hand"><button ${signIn.status === 'needsSignIn' ? nothing : html`class="secondary"`}>Sign in by hand</button></form>`
  const change = html`<a class="button secondary" href="${path}">Edit</a>
    <a class="button secondary danger" href="${path}/delete">Delete</a>`
  const canStart = signIn.status !== 'signingIn' && may(user, 'POST /browser-contexts/:id/sign-in/now')
  return html`${may(user, 'POST /browser-contexts/:id/sign-in/by-hand') ? person : nothing}
    ${canStart ? now : nothing}
    ${may(user, 'POST /browser-contexts/:id/sign-in') ? change : nothing}`
}

/** Whether a person signs in now. */
function isByHand({ history: [last], runId }: Pick<ShownSignIn, 'history' | 'runId'>): boolean {
  return runId !== null && last?.runId === runId && last.kind === 'byHand'
}

function signInFacts(signIn: SignIn, workflows: readonly Workflow[]): Fact[] {
  const { workflowId, runId, signedInAt, checkedAt, nextCheckAt, checkEverySeconds, hasTotp, waitingRuns } = signIn
  const title = workflows.find(({ id }) => id === workflowId)?.title
  const workflow =
    title === undefined
      ? html`<code>${workflowId}</code> <span class="muted">not deployed</span>`
      : html`<a href="/workflows/${workflowId}">${title}</a>`
  const checks =
    checkEverySeconds === null
      ? html`<span class="muted">none</span>`
      : html`every ${formatDuration(checkEverySeconds * 1000)}`
  const run: Fact[] = runId === null ? [] : [['Now', html`${statusBadges[signIn.status][1]}, by ${runLink(runId)}`]]
  const nextCheck = time(nextCheckAt, 'relative', checkEverySeconds === null ? 'none' : 'after the sign-in')
  return [
    ['State', signInBadge(signIn)],
    ...run,
    ['Signed in', time(signedInAt)],
    ['Last check', time(checkedAt)],
    ['Next check', nextCheck],
    ['Checks', checks],
    ['Runs that wait', waitingRuns === 0 ? html`<span class="muted">none</span>` : countOf(waitingRuns)],
    ['Workflow', workflow],
    ['Codes', hasTotp ? 'from a stored TOTP seed' : html`<span class="muted">no TOTP seed</span>`],
  ]
}

/** The limit of the count. */
const waitingRunsMax = 1000

function countOf(runs: number): string {
  return runs >= waitingRunsMax ? `${waitingRunsMax.toLocaleString('en')} or more` : `${runs}`
}

function renderNeeded({ status, error, needsSignInSince, waitingRuns, history }: ShownSignIn): Html | '' {
  if (status !== 'needsSignIn') return nothing
  const failed = history.find(({ kind, outcome }) => kind !== 'check' && outcome === 'failed')
  const why = error ? html`<br />${error.name}: ${error.message}` : nothing
  const evidence = failed ? html`<br />${runLink(failed.runId, 'Run')} has the screenshot and the log.` : nothing
  return notice(
    'bad',
    html`<strong>This browser context needs a person</strong> since ${time(needsSignInSince, 'short')}. ${describeWaiting(waitingRuns)}
      ${why} ${evidence}`,
  )
}

function describeWaiting(runs: number): string {
  if (runs === 0) return 'No run waits for it.'
  return runs === 1 ? 'One run waits for it.' : `${countOf(runs)} runs wait for it.`
}

// History.

const kindLabels: Record<SignInEntry['kind'], string> = { check: 'Check', signIn: 'Sign-in', byHand: 'Sign-in by hand' }

const outcomeBadges: Record<NonNullable<SignInEntry['outcome']>, [tone: Tone, text: string]> = {
  signedIn: ['good', 'Signed in'],
  signedOut: ['warning', 'Signed out'],
  failed: ['bad', 'Failed'],
  cancelled: ['quiet', 'Cancelled'],
}

const causeLabels: Record<SignInCause, string> = {
  signedOut: 'The session had ended.',
  checkDue: 'The check was due.',
  requested: 'It was requested.',
  changed: 'The sign-in was changed.',
}

function renderHistory(history: readonly SignInEntry[]): Html {
  if (history.length === 0) return html`<h2>Checks and sign-ins</h2><p class="muted">None yet.</p>`
  const rows = history.map((entry) => [
    time(entry.startedAt),
    html`<div class="stack">${kindLabels[entry.kind]} <small>${runLink(entry.runId)}</small></div>`,
    renderCause(entry),
    renderOutcome(entry),
    entry.endedAt === null ? '–' : formatDuration(entry.endedAt - entry.startedAt),
  ])
  return html`<h2>Checks and sign-ins</h2>
    ${table(['Started', 'Kind', 'Cause', 'Result', { number: 'Duration' }], rows, 'Checks and sign-ins, newest first')}`
}

function renderCause({ cause, causedByRunId, by, kind }: SignInEntry): Html {
  if (kind === 'byHand') return html`By ${by?.name ?? 'a user'}.`
  if (cause === 'requested' && by !== null) return html`${by.name} requested it.`
  if (causedByRunId === null) return html`${causeLabels[cause]}`
  return html`<div class="stack">${causeLabels[cause]} <small>found by ${runLink(causedByRunId)}</small></div>`
}

function renderOutcome({ outcome, version, error }: SignInEntry): Html {
  if (outcome === null) return badge('busy', 'In progress')
  const stored = version === null ? nothing : html`<small>version ${version}</small>`
  const why = error ? html`<small>${error.message}</small>` : nothing
  return html`<div class="stack">${badge(...outcomeBadges[outcome])} ${stored} ${why}</div>`
}

// Banners on other pages.

/** More contexts than a banner lists. */
const listedMax = 3

/** Which browser contexts need a person, on the overview and on the list of browser contexts. */
export function renderNeeding(contexts: readonly NeededSignIn[]): Html | '' {
  if (contexts.length === 0) return nothing
  const links = contexts.slice(0, listedMax).map(({ id, name, needsSignInSince, waitingRuns }) => {
    return html`<li><a href="/browser-contexts/${id}">${name}</a>, since ${time(needsSignInSince, 'short')}. ${describeWaiting(waitingRuns)}</li>`
  })
  const more = contexts.length - listedMax
  const title = contexts.length === 1 ? 'A browser context needs a sign-in.' : 'Browser contexts need a sign-in.'
  return notice(
    'warning',
    html`<strong>${title}</strong> Runs that use it wait until a person has signed in.
      <ul>${links}</ul>${more > 0 ? html`<a href="/browser-contexts">and ${more} more</a>` : nothing}`,
  )
}
