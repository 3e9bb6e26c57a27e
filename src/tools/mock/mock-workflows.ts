/** The workflows of a mock: validates requests for them, and turns documented runs into runs of them. */
import { fileURLToPath } from 'node:url'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import { invalidRequest } from '../../contract/problem.ts'
import { buildSnapshot } from '../../domain/deployments/build-snapshot.ts'
import { snapshotId } from '../../domain/deployments/snapshot.ts'
import { notFound, wrongCursor } from '../../domain/problems.ts'
import { toMemberErrors, toParameterErrors } from '../../domain/queue/queue-problems.ts'
import { checkRequest } from '../../domain/queue/queue-request.ts'
import { fromMembers, fromParameters, type GivenOptions, withDefaults } from '../../domain/queue/run-options.ts'
import { findListErrors, type ListRequest } from '../../domain/run-api/list-request.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import { type VariableError, Workflows } from '../../domain/workflows/workflows.ts'

export const exampleWorkflows = fileURLToPath(new URL('../../../examples/workflows', import.meta.url))

/** @throws {WorkflowError} if the directory has no workflows or one of them is invalid. */
export async function loadWorkflows(directory: string): Promise<Workflows> {
  const snapshot = await buildSnapshot(directory)
  return new Workflows(snapshot.workflows, snapshotId(snapshot, null)).compile()
}

export interface QueueRequest {
  path: { workflowId: string }
  query: Readonly<Record<string, unknown>>
  headers?: HandlerRequest['headers']
  body: { variableData: Record<string, unknown> }
}

/** A request to queue a run that its workflow accepts. */
export interface AcceptedRequest {
  workflow: Workflow
  /** With defaults, and with secrets masked. */
  variableData: Record<string, unknown>
}

/** Checks what the service checks beyond the document, in the same order and with the same problems. */
export function checkQueueRequest(
  workflows: Workflows,
  { path, query, body }: QueueRequest,
): AcceptedRequest | HandlerResponse {
  const request = { workflowId: path.workflowId, variables: body.variableData, ...fromParameters(query) }
  const checked = checkRequest(workflows, request)
  if (checked.kind === 'valid') return { workflow: checked.workflow, variableData: checked.masked }
  return checked.kind === 'noSuchWorkflow' ? notFound('workflow') : invalidRequest(toParameterErrors(checked))
}

/** The documented run as one of the request: with its workflow, variables and options. */
export function toQueuedRun(
  run: Record<string, unknown>,
  { workflow, variableData }: AcceptedRequest,
  query: QueueRequest['query'],
): Record<string, unknown> {
  const { delaySeconds, expiresInSeconds, ...options } = withDefaults(fromParameters(query))
  const after = (seconds: number) => new Date(Date.parse(String(run.createdAt)) + seconds * 1000).toISOString()
  return {
    ...run,
    ...{ workflowId: workflow.id, workflowVersion: workflow.version, variableData, ...options },
    persistContext: options.browserContextId === null ? null : options.persistContext,
    availableAt: delaySeconds === 0 ? null : after(delaySeconds),
    expiresAt: expiresInSeconds === null ? null : after(expiresInSeconds),
    ...(run.status === 'queued' && { waitingFor: delaySeconds === 0 ? 'worker' : 'delay' }),
  }
}

export interface BatchEntry extends GivenOptions {
  workflowId: string
  variableData: Record<string, unknown>
}

/** Like the service, names the place of each error in the batch. */
export function refuseBatch(workflows: Workflows, { body }: HandlerRequest): HandlerResponse | undefined {
  const { runs } = body as { runs: BatchEntry[] }
  const errors = runs.flatMap(({ workflowId, variableData, ...options }, index) => {
    const checked = checkRequest(workflows, { workflowId, variables: variableData, ...fromMembers(options) })
    if (checked.kind === 'valid') return []
    return toMemberErrors(checked).map(({ pointer, detail }) => ({ pointer: `/runs/${index}${pointer}`, detail }))
  })
  return errors.length > 0 ? invalidRequest(errors) : undefined
}

/**
 * The members of a wait with this answer, or its refusal if none of the workflows that declare the name accepts it;
 * `undefined` if no workflow declares it.
 */
export function checkAnswer(
  workflows: Workflows,
  { path, body }: HandlerRequest,
): { wait: Record<string, unknown> } | HandlerResponse | undefined {
  const [{ runId, name }, { value }] = [path as { runId: string; name: string }, body as { value: unknown }]
  const errors: VariableError[] = []
  for (const { id: workflowId, waits = {} } of workflows.list()) {
    const checked = workflows.checkAnswer(workflowId, name, structuredClone(value))
    if (checked && !('errors' in checked))
      return { wait: { runId, workflowId, name, ...waits[name], value: checked.masked } }
    if (errors.length === 0) errors.push(...(checked?.errors ?? []))
  }
  if (errors.length === 0) return undefined
  return invalidRequest(errors.map(({ pointer, detail }) => ({ pointer: `/value${pointer}`, detail })))
}

/** Refuses filters of runs that cannot be combined, and cursors: lists of the mock have one page. */
export function refuseList(operationId: string, request: HandlerRequest): HandlerResponse | undefined {
  const query = request.query as ListRequest
  const errors = operationId === 'listRuns' ? findListErrors(query) : []
  if (errors.length > 0) return invalidRequest(errors)
  if (query.cursor === undefined) return undefined
  return wrongCursor
}

export interface RunLike extends Record<string, unknown> {
  workflowId: string
  status: string
  variableData: Record<string, unknown>
}

function isRun(value: unknown): value is RunLike {
  const { workflowId, status, variableData } = Object(value)
  return typeof workflowId === 'string' && typeof status === 'string' && typeof variableData === 'object'
}

/**
 * Turns each documented run in a body into one of a loaded workflow: of the one that is asked for, or else of its own or,
 * if that is not loaded, of the first one.
 */
export function toLoadedRuns(workflows: Workflows, body: unknown, workflowId?: string): unknown {
  if (isRun(body)) {
    const asked = workflowId === undefined ? undefined : workflows.get(workflowId)
    const workflow = asked ?? workflows.get(body.workflowId) ?? workflows.list()[0]
    return workflow ? toRunOf(workflows, workflow, body) : body
  }
  const { data } = Object(body)
  if (!Array.isArray(data) || !data.some(isRun)) return body
  return { ...Object(body), data: data.map((run) => toLoadedRuns(workflows, run, workflowId)) }
}

function toRunOf(workflows: Workflows, workflow: Workflow, run: RunLike): RunLike {
  const { id, version, examples } = workflow
  const deploymentId = workflows.deploymentOf(id)
  const hasOutput = run.status === 'succeeded'
  const variablesFit = 'masked' in workflows.checkVariables(id, structuredClone(run.variableData))
  const outputFits = !hasOutput || 'masked' in workflows.checkOutput(id, run.output)
  if (run.workflowId === id && variablesFit && outputFits) return run
  const variableData = (examples?.variables[0]?.masked ?? {}) as Record<string, unknown>
  const output = hasOutput ? (examples?.outputs[0] ?? null) : null
  return { ...run, workflowId: id, workflowVersion: version, deploymentId, variableData, output }
}
