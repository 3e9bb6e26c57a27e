/** Reads the outcome that a caller decides for a run, and checks it against the run's workflow. */
import type { ProblemMember } from '../contract/problem.ts'
import { messageLengthMax, nameLengthMax } from '../domain/runs/reported-values.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { DecidedOutcome } from './scripted-worker.ts'

const membersOf = {
  succeeded: ['status', 'output'],
  failed: ['status', 'error', 'retry'],
  timedOut: ['status'],
  workerLost: ['status'],
} as const

type Errors = { errors: ProblemMember[] }

/** What is wrong with it, each with its place; or the outcome. */
export function readOutcome(
  body: unknown,
  { id, timeLimitSeconds }: Workflow,
  workflows: Workflows,
): DecidedOutcome | Errors {
  if (!isObject(body)) return toErrors('', 'must be an object')
  const { status } = body
  if (typeof status !== 'string' || !Object.hasOwn(membersOf, status))
    return toErrors('/status', `must be one of ${Object.keys(membersOf).join(', ')}`)
  const kind = status as keyof typeof membersOf
  const known: readonly string[] = membersOf[kind]
  const unknown = Object.keys(body).filter((name) => !known.includes(name))
  if (unknown.length > 0)
    return { errors: unknown.map((name) => ({ pointer: `/${name}`, detail: `is not a member of an outcome ${kind}` })) }
  switch (kind) {
    case 'succeeded':
      return readSuccess(body, id, workflows)
    case 'failed':
      return readFailure(body)
    case 'timedOut':
      return { kind, limitSeconds: timeLimitSeconds, step: null }
    case 'workerLost':
      return { kind }
  }
}

function readSuccess(body: Record<string, unknown>, workflowId: string, workflows: Workflows): DecidedOutcome | Errors {
  const { output = null } = body
  const checked = workflows.checkOutput(workflowId, structuredClone(output))
  if ('masked' in checked) return { kind: 'succeeded', output }
  return { errors: checked.errors.map(({ pointer, detail }) => ({ pointer: `/output${pointer}`, detail })) }
}

function readFailure({ error = {}, retry = false }: Record<string, unknown>): DecidedOutcome | Errors {
  if (typeof retry !== 'boolean') return toErrors('/retry', 'must be true or false')
  if (!isObject(error)) return toErrors('/error', 'must be an object')
  const { name = 'Error', message = 'The outcome was decided by hand.', ...others } = error
  const errors = [
    ...checkText('/error/name', name, nameLengthMax),
    ...checkText('/error/message', message, messageLengthMax),
    ...Object.keys(others).map((each) => ({ pointer: `/error/${each}`, detail: 'is not a member of an error' })),
  ]
  if (errors.length > 0) return { errors }
  const described = { name: String(name), message: String(message), stack: null, step: null }
  return { kind: 'failed', reason: 'workflowFailed', error: described, isFinal: !retry }
}

function checkText(pointer: string, value: unknown, lengthMax: number): ProblemMember[] {
  if (typeof value === 'string' && value.length > 0 && value.length <= lengthMax) return []
  return [{ pointer, detail: `must be a text of 1 to ${lengthMax} characters` }]
}

function toErrors(pointer: string, detail: string): Errors {
  return { errors: [{ pointer, detail }] }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
