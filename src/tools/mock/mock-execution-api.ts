/** Handlers of the mocked Execution API: the service's rules about workflows, the latest runs, and Prism for the rest. */
import { setTimeout } from 'node:timers/promises'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import type { ServerSentEvent } from '../../contract/handler.ts'
import { invalidRequest } from '../../contract/problem.ts'
import { findBundleErrors } from '../../domain/deployments/deployment-operations.ts'
import { describeRefusedStart } from '../../domain/queue/queue-problems.ts'
import type { RefusedStart } from '../../domain/queue/reused-steps.ts'
import { fromMembers, type RunOptions, repeatedOptions, toParameters } from '../../domain/queue/run-options.ts'
import { runUnfinished } from '../../domain/run-api/queue-operations.ts'
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
import { mockResponse, parseEvents } from './mock-response.ts'
import { type Clock, MockRuns } from './mock-runs.ts'
import type { MockWebhooks } from './mock-webhooks.ts'
import {
  type AcceptedRequest,
  type BatchEntry,
  checkAnswer,
  checkQueueRequest,
  type QueueRequest,
  refuseBatch,
  toLoadedRuns,
} from './mock-workflows.ts'
import { isChosen } from './preferences.ts'
import { MadeUpError, type Prism } from './prism.ts'

type Handler = (request: HandlerRequest) => Promise<HandlerResponse>

export const systemClock: Clock = {
  now: Date.now,
  // An aborted wait ends the stream.
  sleep: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
}

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
  /** Set if events are sent. */
  webhooks?: MockWebhooks | undefined
  /** The address of the mock. */
  executionUrl(): string
}

/** Handlers of the operations that are about workflows and runs. All others are Prism's. */
export async function executionHandlers(dependencies: Dependencies): Promise<Record<string, Handler>> {
  const { prism, operations, workflows, clock, webhooks, executionUrl } = dependencies
  const cursors = new Cursors(new Encryption(new FixedKeys([Buffer.alloc(keyBytes)])))
  const service = workflowOperations({ workflows: { current: () => workflows }, cursors, executionUrl })
  const find = (id: string) => operations.find((operation) => operation.id === id) as Operation
  const runs = new MockRuns(await readScenario(prism, find('streamRunEvents')), clock)
  const onQueued = (id: string) => void webhooks?.follow(runs, id)
  const queue = queueHandler(prism, find('queueRemoteRun'), workflows, runs, onQueued)
  const ofService = Object.entries(service).map(([id, handler]) => {
    return [id, handler as never as Handler] as const
  })
  const own: Record<string, Handler | undefined> = {
    ...Object.fromEntries(ofService),
    getRun: async (request) => respond(runs.get(runOf(request))),
    cancelRun: async (request) => respond(runs.cancel(runOf(request))),
    completeWait: async (request) => {
      const answer = checkAnswer(workflows, runs.get(runOf(request)), request)
      if (!answer || !('wait' in answer)) return notHere
      const response = await mockResponse(prism, find('completeWait'), request, clock)
      return 'body' in response ? { ...response, body: { ...Object(response.body), ...answer.wait } } : response
    },
    listRuns: (request) => listRuns(dependencies, find('listRuns'), find('getRun'), request),
    queueRemoteRunBatch: async (request) => {
      const response = await mockResponse(prism, find('queueRemoteRunBatch'), request, clock)
      if (!('body' in response)) return response
      const [template = {}] = (response.body as { data: object[] }).data
      const { runs: entries } = request.body as { runs: BatchEntry[] }
      const data = entries.map(({ workflowId, variableData, ...options }) => {
        const query = toParameters(fromMembers(options))
        const queueRequest = { path: { workflowId }, query, body: { variableData } }
        const accepted = checkQueueRequest(workflows, queueRequest) as AcceptedRequest
        const run = runs.queue(template, accepted, queueRequest, accepted.workflow.examples?.outputs[0] ?? null, {})
        onQueued(String(run.id))
        return run
      })
      return { ...response, body: { data } }
    },
    rerunRun: rerunHandler(dependencies, find('rerunRun'), find('queueRemoteRun'), runs, onQueued),
    streamRunEvents: async (request) => {
      const after = Number(request.header['Last-Event-ID'] ?? 0)
      const events = runs.events(runOf(request), after, request.signal)
      if (!events) return runs.has(runOf(request)) ? { status: 204 } : notHere
      return { status: 200, headers: { 'Cache-Control': 'no-store' }, events: events as AsyncIterable<ServerSentEvent> }
    },
  }
  const handlers = operations.map((operation): [string, Handler] => {
    const handler: Handler = async (request) => {
      const refused = refuse(operation.id, workflows, runs, request)
      if (refused) return refused
      const handle = isChosen(request.headers.prefer as string | undefined) ? undefined : own[operation.id]
      const response = (await handle?.(request)) ?? notHere
      if (response !== notHere) return response
      // Of a run that was queued here, the workflow is known.
      const { runId } = request.path as { runId?: string }
      const { workflowId } = (runId && runs.get(runId)) || (request.query as { workflowId?: string })
      const chosen = await mockResponse(prism, operation, request, clock)
      if (operation.id === 'sendTestWebhook' && chosen.status === 202) void webhooks?.sendTest()
      return 'body' in chosen
        ? { ...chosen, body: toLoadedRuns(workflows, chosen.body, workflowId as string | undefined) }
        : chosen
    }
    return [operation.id, handler]
  })
  return { ...Object.fromEntries(handlers), queueRemoteRun: queue(clock) }
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

function runOf({ path }: HandlerRequest): string {
  return (path as { runId: string }).runId
}

/** Refuses what the service refuses beyond the document. */
function refuse(
  operationId: string,
  workflows: Workflows,
  runs: MockRuns,
  request: HandlerRequest,
): HandlerResponse | undefined {
  if (operationId === 'queueRemoteRunBatch') return refuseBatch(workflows, request)
  if (operationId === 'completeWait') {
    const answer = checkAnswer(workflows, runs.get(runOf(request)), request)
    return answer && 'wait' in answer ? undefined : answer
  }
  if (operationId === 'createDeployment') {
    const errors = findBundleErrors(request.body as Parameters<typeof findBundleErrors>[0])
    return errors.length > 0 ? invalidRequest(errors) : undefined
  }
  if (operationId !== 'createWebhookEndpoint' && operationId !== 'updateWebhookEndpoint') return undefined
  const errors = findUnknownWorkflows(request.body as EndpointChange, workflows)
  return errors.length > 0 ? invalidRequest(errors) : undefined
}

/** The run was not queued here: Prism responds. */
const notHere: HandlerResponse = { status: 404 }

function respond(run: Record<string, unknown> | undefined): HandlerResponse {
  return run ? { status: 200, body: run } : notHere
}

/** The example whose events a queued run follows. */
const scenarioName = 'longRun'

async function readScenario(prism: Prism, operation: Operation) {
  const choice = { code: 200, exampleKey: scenarioName, dynamic: false }
  const { body } = await prism.choose(operation, undefined, choice, undefined)
  return parseEvents(body as string) as ConstructorParameters<typeof MockRuns>[0]
}

function queueHandler(
  prism: Prism,
  operation: Operation,
  workflows: Workflows,
  runs: MockRuns,
  onQueued: (id: string) => void,
) {
  return (clock: Clock): Handler =>
    async (request) => {
      const queueRequest = request as unknown as QueueRequest
      const accepted = checkQueueRequest(workflows, queueRequest)
      if (!('workflow' in accepted)) return accepted
      const { id } = accepted.workflow
      const typed = { ...operation, id: workflowNames(id).operationId, path: queuePath + id }
      const prefer = request.headers.prefer as string | undefined
      // The examples of the document are those of the operation for any workflow.
      const usesTyped = !isChosen(prefer, 'example') && accepted.workflow.examples?.variables.length
      const ofAnyWorkflow = () => mockResponse(prism, operation, request, clock)
      const response = usesTyped
        ? await mockResponse(prism, typed, request, clock).catch((error: unknown) => {
            // Prism cannot make up values for every schema.
            if (error instanceof MadeUpError) return ofAnyWorkflow()
            throw error
          })
        : await ofAnyWorkflow()
      if (!('body' in response)) return response
      if (isChosen(prefer)) return { ...response, body: toLoadedRuns(workflows, response.body, id) }
      const output = await makeOutput(prism, typed, workflows, accepted)
      const isAwaited = response.status === 200
      const run = runs.queue(response.body as object, accepted, queueRequest, output, { isAwaited })
      onQueued(String(run.id))
      return { ...response, headers: { ...response.headers, Location: `/v1/execution/runs/${run.id}` }, body: run }
    }
}

/** Repeats a finished run that was queued here. */
function rerunHandler(
  { prism, workflows, clock }: Dependencies,
  operation: Operation,
  queue: Operation,
  runs: MockRuns,
  onQueued: (id: string) => void,
) {
  return async (request: HandlerRequest): Promise<HandlerResponse> => {
    const finished = runs.get((request.path as { runId: string }).runId) as FinishedRun | undefined
    if (!finished) return notHere
    if (finished.finishedAt === null) return runUnfinished(finished)
    const { variableData, fromStep } = (request.body ?? {}) as RerunBody
    const { id, workflowId } = finished
    const query = { ...toParameters(repeatedOptions(finished)), ...(request.query as object) }
    const queueRequest = { path: { workflowId }, query, body: { variableData: variableData ?? finished.variableData } }
    const accepted = checkQueueRequest(workflows, queueRequest, variableData === undefined)
    if (!('workflow' in accepted)) return accepted
    const reused = fromStep === undefined ? [] : stepsBefore(fromStep, finished.status, runs.steps(id))
    if ('refused' in reused) return invalidRequest([{ pointer: '/fromStep', detail: describeRefusedStart(reused) }])
    const response = await mockResponse(prism, operation, request, clock)
    if (!('body' in response)) return response
    const typed = { ...queue, id: workflowNames(workflowId).operationId, path: queuePath + workflowId }
    const output = await makeOutput(prism, typed, workflows, accepted)
    const run = runs.queue({ ...(response.body as object), rerunOf: id }, accepted, queueRequest, output, { reused })
    onQueued(String(run.id))
    return { ...response, headers: { ...response.headers, Location: `/v1/execution/runs/${run.id}` }, body: run }
  }
}

/** The same refusals as the service's, of a run that has succeeded or was cancelled. */
function stepsBefore(fromStep: string, status: string, { finished, unfinished }: ReturnType<MockRuns['steps']>) {
  if (status === 'succeeded') return { refused: 'succeeded' } satisfies RefusedStart
  const steps = [...finished, ...unfinished]
  const index = steps.indexOf(fromStep)
  return index === -1 ? ({ refused: 'noSuchStep', steps } satisfies RefusedStart) : finished.slice(0, index)
}

interface RerunBody {
  variableData?: Record<string, unknown>
  fromStep?: string
}

interface FinishedRun extends Partial<RunOptions> {
  id: string
  workflowId: string
  status: string
  finishedAt: string | null
  variableData: Record<string, unknown>
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
