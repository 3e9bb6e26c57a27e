/** Why requests to queue runs are refused, in the words of each kind of caller. */
import type { ProblemMember } from '../../contract/problem.ts'
import type { RefusedRun } from './queue-request.ts'
import type { RefusedStart } from './reused-steps.ts'
import { type OptionName, parameterOf } from './run-options.ts'

/** Details of validation errors, by what a request lacks. */
export const refusedDetails = {
  expiresTooSoon: 'must be longer than delaySeconds',
  noSuchWorkflow: 'names no workflow of this account',
  noSuchBrowserContext: 'names no browser context of this account',
  usesNoBrowser: 'requires a workflow that uses a browser; this one does not',
  usesNoConcurrencyKey: 'requires a workflow with a limit or rate per key; this one has none',
}

/** A validation error of a request: its member, a JSON Pointer within the member's value, and a detail. */
export interface RequestError {
  member: OptionName | 'workflowId' | 'variableData'
  pointer: string
  detail: string
}

const refusedMembers = {
  noSuchWorkflow: 'workflowId',
  expiresTooSoon: 'expiresInSeconds',
  noSuchBrowserContext: 'browserContextId',
  usesNoBrowser: 'browserContextId',
  usesNoConcurrencyKey: 'concurrencyKey',
} as const

export function toErrors(refused: RefusedRun): readonly RequestError[] {
  if (refused.kind === 'optionsInvalid') return refused.errors
  if (refused.kind === 'variablesInvalid') return refused.errors.map((error) => ({ member: 'variableData', ...error }))
  return [{ member: refusedMembers[refused.kind], pointer: '', detail: refusedDetails[refused.kind] }]
}

/** The errors of a request whose options are query parameters. */
export function toParameterErrors(refused: RefusedRun): ProblemMember[] {
  return toErrors(refused).map(({ member, pointer, detail }) =>
    member === 'variableData' || member === 'workflowId'
      ? { pointer: `/${member}${pointer}`, detail }
      : { parameter: parameterOf(member), detail },
  )
}

/** The errors of a JSON object whose members are options. */
export function toMemberErrors(refused: RefusedRun): { pointer: string; detail: string }[] {
  return toErrors(refused).map(({ member, pointer, detail }) => ({ pointer: `/${member}${pointer}`, detail }))
}

/** Why a finished run cannot be repeated, as a sentence. */
export function describeRefusedRepeat(refused: RefusedRun): string {
  switch (refused.kind) {
    case 'noSuchWorkflow':
      return 'The account no longer has the workflow of the run.'
    case 'noSuchBrowserContext':
      return 'The account no longer has the browser context of the run.'
    case 'usesNoBrowser':
      return 'The run has a browser context, but its workflow no longer uses a browser.'
    case 'variablesInvalid': {
      const [error] = refused.errors
      return `The variables no longer fit the workflow: ${error?.pointer} ${error?.detail}.`
    }
    case 'optionsInvalid':
    case 'expiresTooSoon':
    case 'usesNoConcurrencyKey': {
      const [error] = toErrors(refused)
      return `${error?.member}${error?.pointer} ${error?.detail}.`
    }
  }
}

/** A 409 about an Idempotency-Key that was used in the last 24 hours. */
function keyConflict(detail: string, error: string) {
  const errors = [{ header: 'Idempotency-Key', detail: error }]
  return { status: 409, problem: { kind: 'idempotency-conflict', detail, errors } } as const
}

export const idempotencyConflict = keyConflict(
  'This Idempotency-Key was used with another request in the last 24 hours. Nothing was stored.',
  'was used with another request',
)

export const runDeleted = keyConflict(
  'This Idempotency-Key was used in the last 24 hours for a run that has been deleted. Use another key to queue another run. Nothing was stored.',
  'was used for a run that has been deleted',
)

export const batchRunDeleted = keyConflict(
  'This Idempotency-Key was used in the last 24 hours for a batch with a run that has been deleted. Use another key to queue another batch. Nothing was stored.',
  'was used for a batch with a run that has been deleted',
)

/** Seconds. An estimate: runs start when workers are free. */
const retryAfterSeconds = '5'

export function tooManyQueuedRuns({ queuedMax }: { queuedMax: number }) {
  const detail = `This account has reached its limit of ${queuedMax} queued runs. Try again when some have started, or cancel some.`
  return {
    status: 429 as const,
    headers: { 'Retry-After': retryAfterSeconds },
    problem: { kind: 'too-many-queued-runs' as const, detail },
  }
}

/** Completes a sentence that begins with the step. */
export function describeRefusedStart(refusal: RefusedStart): string {
  switch (refusal.refused) {
    case 'succeeded':
      return 'needs results of a run that succeeded, which are not kept'
    case 'erased':
      return 'needs results of the run that are no longer stored'
    case 'otherCaller':
      return 'needs the caller that queued the run, or the same variables, because results can derive from secrets'
    case 'otherSecrets':
      return 'needs results that contain a secret of the run, which the variables replace'
    case 'otherVersion':
      return `needs results of version ${refusal.finished} of the workflow, which now has version ${refusal.current}`
    case 'noSuchStep': {
      const known = refusal.steps.length === 0 ? 'it has none' : `the first are ${refusal.steps.join(', ')}`
      return `is not a step that the run has started: ${known}`
    }
  }
}
