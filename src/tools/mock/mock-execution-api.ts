/** Handlers of the mocked Execution API: the live document and the service's rules about workflows, and Prism for the rest. */
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import { invalidRequest } from '../../contract/problem.ts'
import { findBundleErrors } from '../../domain/deployments/deployment-operations.ts'
import { findChannelErrors } from '../../domain/notifications/notification-operations.ts'
import type { NewRule } from '../../domain/notifications/notification-rules.ts'
import { fromMembers, toParameters } from '../../domain/queue/run-options.ts'
import type { EndpointChange } from '../../domain/webhooks/webhook-endpoints.ts'
import { findUnknownWorkflows } from '../../domain/webhooks/webhook-operations.ts'
import { workflowOperations } from '../../domain/workflows/workflow-operations.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { workflowsDocument } from '../../domain/workflows/workflows-document.ts'
import type { Document } from '../../openapi/document.ts'
import { workflowNames } from '../../openapi/schema-components.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import { Cursors } from '../../storage/cursors.ts'
import { Encryption, FixedKeys, keyBytes } from '../../storage/encryption.ts'
import { withFilters } from './agreement.ts'
import { type Clock, mockResponse } from './mock-response.ts'
import {
  type AcceptedRequest,
  type BatchEntry,
  checkAnswer,
  checkQueueRequest,
  type QueueRequest,
  type RunLike,
  refuseBatch,
  toLoadedRuns,
  toQueuedRun,
} from './mock-workflows.ts'
import { isChosen } from './preferences.ts'
import { MadeUpError, type Prism } from './prism.ts'

type Handler = (request: HandlerRequest) => Promise<HandlerResponse>

const queuePath = '/v1/execution/queue-remote/'

/** The document with an operation for each workflow, from which Prism responds. */
export function withWorkflows(document: Document, workflows: Workflows): Document {
  const live = JSON.parse(Buffer.from(workflowsDocument(workflows, 'http://127.0.0.1').bytes).toString()) as Document
  const components = Object.entries(live.components).map(([kind, members]) => {
    return [kind, { ...members, ...document.components[kind] }]
  })
  return {
    ...document,
    paths: { ...live.paths, ...document.paths },
    components: { ...document.components, ...Object.fromEntries(components) },
  }
}

interface Dependencies {
  prism: Prism
  operations: Operation[]
  workflows: Workflows
  clock: Clock
  /** The address of the mock. */
  executionUrl(): string
}

/** Handlers of the operations that are about workflows and runs. All others are Prism's. */
export async function executionHandlers(dependencies: Dependencies): Promise<Record<string, Handler>> {
  const { prism, operations, workflows, clock, executionUrl } = dependencies
  const cursors = new Cursors(new Encryption(new FixedKeys([Buffer.alloc(keyBytes)])))
  const service = workflowOperations({ workflows: { current: () => workflows }, cursors, executionUrl })
  const find = (id: string) => operations.find((operation) => operation.id === id) as Operation
  const own: Record<string, Handler> = {
    ...(service as never as Record<string, Handler>),
    listRuns: (request) => listRuns(dependencies, find('listRuns'), find('getRun'), request),
    rerunRun: (request) => rerun(dependencies, find('rerunRun'), request),
    queueRemoteRunBatch: (request) => queueBatch(dependencies, find('queueRemoteRunBatch'), request),
  }
  const handlers = operations.map((operation): [string, Handler] => {
    const handler: Handler = async (request) => {
      const refused = refuse(operation.id, workflows, request)
      if (refused) return refused
      const handle = isChosen(request.headers.prefer as string | undefined) ? undefined : own[operation.id]
      if (handle) return handle(request)
      const chosen = await mockResponse(prism, operation, request, clock)
      const { workflowId } = { ...(request.query as object), ...(request.path as object) } as { workflowId?: string }
      return 'body' in chosen ? { ...chosen, body: toLoadedRuns(workflows, chosen.body, workflowId) } : chosen
    }
    return [operation.id, handler]
  })
  return {
    ...Object.fromEntries(handlers),
    queueRemoteRun: (request) => queueRun(dependencies, find('queueRemoteRun'), request as unknown as QueueRequest),
    completeWait: (request) => completeWait(dependencies, find('completeWait'), request),
  }
}

/** The documented runs that fit the filters. */
async function listRuns(
  { prism, workflows, clock }: Dependencies,
  list: Operation,
  get: Operation,
  request: HandlerRequest,
): Promise<HandlerResponse> {
  const response = await mockResponse(prism, list, request, clock)
  const query = request.query as { workflowId?: string; limit?: number }
  if (!('body' in response)) return response
  const { data } = response.body as { data: Record<string, unknown>[] }
  const isLoaded = query.workflowId === undefined || workflows.get(query.workflowId)
  // The examples of one run have every status.
  const examples = data.length > 0 ? [] : (prism.listExamples(get).get(200) ?? [])
  const others = await Promise.all(
    examples.map((exampleKey) => prism.choose(get, undefined, { code: 200, exampleKey, dynamic: false }, undefined)),
  )
  const fitting = withFilters(
    others.map(({ body }) => body as Record<string, unknown>),
    query,
  )
  const found = isLoaded ? [...data, ...fitting.slice(0, query.limit)] : []
  return { ...response, body: toLoadedRuns(workflows, { data: found, nextCursor: null }, query.workflowId) }
}

/** The documented run once for each run of the request, with an ID of its own. */
async function queueBatch(
  { prism, workflows, clock }: Dependencies,
  operation: Operation,
  request: HandlerRequest,
): Promise<HandlerResponse> {
  const response = await mockResponse(prism, operation, request, clock)
  if (!('body' in response)) return response
  const [template] = (response.body as { data: { id: string }[] }).data
  if (!template) return response
  const { runs } = request.body as { runs: BatchEntry[] }
  const data = runs.map(({ workflowId, variableData, ...options }, index) => {
    const query = toParameters(fromMembers(options))
    const accepted = checkQueueRequest(workflows, { path: { workflowId }, query, body: { variableData } })
    const id = template.id.slice(0, -idDigits) + index.toString(16).padStart(idDigits, '0')
    return toQueuedRun({ ...template, id }, accepted as AcceptedRequest, query)
  })
  return { ...response, body: { data } }
}

const idDigits = 4

/** The documented run, with the variables of the request if its workflow takes them: that of the run is not known. */
async function rerun(
  { prism, workflows, clock }: Dependencies,
  operation: Operation,
  request: HandlerRequest,
): Promise<HandlerResponse> {
  const response = await mockResponse(prism, operation, request, clock)
  if (!('body' in response)) return response
  const run = toLoadedRuns(workflows, response.body) as RunLike
  const { variableData = run.variableData } = Object(request.body) as Partial<RunLike>
  const query = request.query as QueueRequest['query']
  const accepted = checkQueueRequest(workflows, { path: run, query, body: { variableData } })
  return { ...response, body: 'workflow' in accepted ? toQueuedRun({ ...run }, accepted, query) : run }
}

/** Refuses what the service refuses beyond the document. */
function refuse(operationId: string, workflows: Workflows, request: HandlerRequest): HandlerResponse | undefined {
  if (operationId === 'queueRemoteRunBatch') return refuseBatch(workflows, request)
  if (operationId === 'createDeployment') {
    const errors = findBundleErrors(request.body as Parameters<typeof findBundleErrors>[0])
    return errors.length > 0 ? invalidRequest(errors) : undefined
  }
  if (operationId === 'createNotificationRule') {
    const rule = request.body as NewRule
    const errors = [...findChannelErrors(rule.channel, rule, true), ...findUnknownWorkflows(rule, workflows)]
    return errors.length > 0 ? invalidRequest(errors) : undefined
  }
  if (!['createWebhookEndpoint', 'updateWebhookEndpoint', 'updateNotificationRule'].includes(operationId))
    return undefined
  const errors = findUnknownWorkflows(request.body as EndpointChange, workflows)
  return errors.length > 0 ? invalidRequest(errors) : undefined
}

async function completeWait(
  { prism, workflows, clock }: Dependencies,
  operation: Operation,
  request: HandlerRequest,
): Promise<HandlerResponse> {
  const answer = checkAnswer(workflows, request)
  if (answer && !('wait' in answer)) return answer
  const response = await mockResponse(prism, operation, request, clock)
  if (!answer || !('body' in response) || isChosen(request.headers.prefer as string | undefined)) return response
  return { ...response, body: { ...Object(response.body), ...answer.wait } }
}

async function queueRun(
  { prism, workflows, clock }: Dependencies,
  operation: Operation,
  request: QueueRequest,
): Promise<HandlerResponse> {
  const accepted = checkQueueRequest(workflows, request)
  if (!('workflow' in accepted)) return accepted
  const { id, examples } = accepted.workflow
  const typed = { ...operation, id: workflowNames(id).operationId, path: queuePath + id }
  const prefer = request.headers?.prefer as string | undefined
  const ofAnyWorkflow = () => mockResponse(prism, operation, request as unknown as HandlerRequest, clock)
  // The examples of the document are those of the operation for any workflow.
  const usesTyped = !isChosen(prefer, 'example') && examples?.variables.length
  const response = usesTyped
    ? await mockResponse(prism, typed, request as unknown as HandlerRequest, clock).catch((error: unknown) => {
        // Prism cannot make up values for every schema.
        if (error instanceof MadeUpError) return ofAnyWorkflow()
        throw error
      })
    : await ofAnyWorkflow()
  if (!('body' in response)) return response
  if (isChosen(prefer)) return { ...response, body: toLoadedRuns(workflows, response.body, id) }
  const run = toQueuedRun(response.body as Record<string, unknown>, accepted, request.query)
  const output = run.status === 'succeeded' ? await makeOutput(prism, typed, workflows, accepted) : null
  return { ...response, body: { ...run, output } }
}

/** The example of the output, or else one that Prism makes up from the schema. */
async function makeOutput(
  prism: Prism,
  typed: Operation,
  workflows: Workflows,
  { workflow }: AcceptedRequest,
): Promise<unknown> {
  const [example] = workflow.examples?.outputs ?? []
  if (example !== undefined) return example
  for (let attempt = 0; attempt < madeUpMax; attempt++) {
    const choice = { code: 200, dynamic: true }
    const made = await prism.choose(typed, undefined, choice, undefined).catch((error: unknown) => {
      if (error instanceof MadeUpError) return { body: {} }
      throw error
    })
    const { status, output } = made.body as { status?: string; output?: unknown }
    if (status === 'succeeded' && 'masked' in workflows.checkOutput(workflow.id, output)) return output
  }
  return null
}

/** Prism makes up a run of any status. */
const madeUpMax = 20
