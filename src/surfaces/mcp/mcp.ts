/**
 * An MCP server for one request: the caller's workflows as tools. A call queues a run and follows it to its end. The list
 * of tools is written without the SDK, which would make it again for each request.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  CancelTaskRequestSchema,
  ErrorCode,
  GetTaskPayloadRequestSchema,
  GetTaskRequestSchema,
  isJSONRPCRequest,
  ListToolsRequestSchema,
  McpError,
  RELATED_TASK_META_KEY,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Task,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import type { Request, RequestHandler, Response } from 'express'
import { readBody } from '../../contract/body.ts'
import type { Exchange } from '../../contract/exchange.ts'
import { invalidBody, Problem } from '../../contract/problem.ts'
import type { Reserve } from '../../contract/tenant-limits.ts'
import type { Principal } from '../../domain/api-keys/api-key.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import type { RunFeed } from '../../domain/run-api/run-feed.ts'
import type { QueueResult, Runs } from '../../domain/run-api/runs.ts'
import type { Wait, Waits } from '../../domain/run-api/waits.ts'
import type { Run, RunEvent } from '../../domain/runs/run.ts'
import { isFinal } from '../../domain/runs/run-state.ts'
import { readSized } from '../../domain/sized.ts'
import type { JsonSchema, Workflow } from '../../domain/workflows/workflow.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { representations } from '../../domain/workflows/workflows-document.ts'
import { booleanSchema, toComponents } from '../../openapi/schema-components.ts'
import { executionContract } from '../../openapi/served-documents.ts'
import { bodyBytesMax, type Operation } from '../../openapi/served-operations.ts'
import type { Cursors } from '../../storage/cursors.ts'
import { StoreUnavailable } from '../../storage/store.ts'
import { admitCaller, type CallerDependencies, refuse } from '../api-caller.ts'
import { toToolName, workflowIdOf } from './tool-names.ts'

interface ToolDependencies {
  workflows: WorkflowRegistry
  runs: Runs
  feed: RunFeed
  cursors: Cursors
  waits: Waits
}

interface ToolCaller {
  principal: Principal
  /** Whether the API key would be accepted now. */
  stillAuthenticated(): Promise<boolean>
  logError(error: unknown): void
  /** See `TenantRequest.reserve`. */
  reserve: Reserve
}

const toolsPerPage = 100
const listName = 'mcp-tools'

/** The member of `_meta` with the id of a call's run. */
const runIdMember = 'execution-service/runId'

function createToolServer(dependencies: ToolDependencies, caller: ToolCaller): Server {
  const { version } = (executionContract.document as unknown as { info: { version: string } }).info
  const tasks = { cancel: {}, requests: { tools: { call: {} } } }
  const server = new Server({ name: 'execution-service', version }, { capabilities: { tools: {}, tasks } })
  serveTasks(server, dependencies, caller)
  const visible = dependencies.workflows.current(caller.principal.accountId)

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const token = _meta?.progressToken
    const workflowId = workflowIdOf(params.name, visible)
    let percent = 0
    const notify = async (event: RunEvent, runId: string) => {
      if (token === undefined) return
      percent = nextPercent(percent, event)
      const progress = { progressToken: token, progress: percent, total: 100, message: describeEvent(event, runId) }
      await sendNotification({ method: 'notifications/progress', params: progress })
    }
    try {
      const queued = await dependencies.runs.queue(caller.principal, {
        workflowId,
        variables: params.arguments ?? {},
      })
      if (queued.kind !== 'queued') return toToolError(params.name, queued)
      const { id, accountId } = queued.run
      if (params.task) return { task: toTask(queued.run), _meta: { [runIdMember]: id } }
      // A person may take days to answer, or to store a secret: the client learns how to do it.
      let waiting: Run | undefined
      const needsPerson = async (event: RunEvent) => {
        if (!isReturned(event)) return false
        const run = await dependencies.runs.get(accountId, id)
        waiting = run && waitsForPerson(run) ? run : undefined
        return waiting !== undefined
      }
      const run = await follow(dependencies, caller, id, signal, async (event) => {
        await notify(event, id)
        return needsPerson(event)
      })
      // An error, because a result without error must have the output of the workflow.
      const asked = waiting && (await describeNeeded(dependencies, waiting))
      if (run && asked !== undefined) return { ...toolError(asked), _meta: { [runIdMember]: id } }
      return toResult(run, id, visible.get(workflowId))
    } catch (error) {
      if (error instanceof Problem) return toolError(error.problem.detail)
      throw toMcpError(error, caller)
    }
  })
  return server
}

function toMcpError(error: unknown, { logError }: ToolCaller): McpError {
  if (error instanceof McpError) return error
  if (error instanceof Problem) return new McpError(ErrorCode.InternalError, error.problem.detail)
  logError(error)
  const isDown = error instanceof StoreUnavailable
  return new McpError(ErrorCode.InternalError, isDown ? 'The store is unavailable.' : 'The service failed.')
}

/**
 * Runs as tasks (specification 2025-11-25), by the ids of the runs: any process can serve them, and any run of the account is
 * one. Not by the SDK's `TaskStore`, which reads the store again and again while a client waits for a result.
 */
function serveTasks(server: Server, dependencies: ToolDependencies, caller: ToolCaller): void {
  const { runs, workflows } = dependencies
  const { accountId, apiKeyId } = caller.principal
  const noTask = (id: string) => new McpError(ErrorCode.InvalidParams, `There is no task ${JSON.stringify(id)}.`)
  const find = async (taskId: string) => {
    const found = isRunId.test(taskId) ? await runs.measure(accountId, taskId) : undefined
    if (found) return found
    throw noTask(taskId)
  }
  const read = async (taskId: string) => {
    const run = await readSized(caller.reserve, await find(taskId))
    if (run) return run
    throw noTask(taskId)
  }
  const fail = (error: unknown): never => {
    throw toMcpError(error, caller)
  }
  const describe = async (run: Run) => toTask(run, await describeNeeded(dependencies, run))
  const cancel = async (run: Run) => {
    if (isFinal(run.status)) throw new McpError(ErrorCode.InvalidParams, `Run ${run.id} has ended as ${run.status}.`)
    return toTask((await runs.cancel(accountId, run.id, { apiKeyId })) ?? run)
  }
  const finish = async (id: string, signal: AbortSignal) => {
    const run = await follow(dependencies, caller, id, signal)
    if (run && !isFinal(run.status))
      throw new McpError(ErrorCode.InternalError, 'The service is stopping. Ask for the result again.')
    const result = toResult(run, id, run && workflows.current(accountId).get(run.workflowId))
    return { ...result, _meta: { ...result._meta, [RELATED_TASK_META_KEY]: { taskId: id } } }
  }
  server.setRequestHandler(GetTaskRequestSchema, ({ params }) => read(params.taskId).then(describe).catch(fail))
  server.setRequestHandler(CancelTaskRequestSchema, ({ params }) => read(params.taskId).then(cancel).catch(fail))
  server.setRequestHandler(GetTaskPayloadRequestSchema, ({ params: { taskId } }, { signal }) =>
    find(taskId)
      .then(() => finish(taskId.toLowerCase(), signal))
      .catch(fail),
  )
}

const isRunId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Clients read a run that has taken long less often. */
const pollMilliseconds = { min: 1000, max: 30_000 }

/** @param asked what the run waits for. `input_required` would announce a request of the server, which none can send. */
function toTask({ id, status, cancelRequested, error, createdAt, startedAt, finishedAt }: Run, asked?: string): Task {
  const age = Date.now() - createdAt
  const described = isFinal(status)
    ? `Run ${id} has ended as ${status}${error ? `: ${error.name}: ${error.message}` : '.'}`
    : `Run ${id} is ${status}.`
  return {
    taskId: id,
    status: cancelRequested ? 'cancelled' : taskStatuses[status],
    statusMessage: asked ?? described,
    // The account's retention decides, from the end of the run.
    ttl: null,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(finishedAt ?? startedAt ?? createdAt).toISOString(),
    pollInterval: Math.round(Math.min(pollMilliseconds.max, Math.max(pollMilliseconds.min, age / 10))),
  }
}

const taskStatuses: Record<Run['status'], Task['status']> = {
  queued: 'working',
  running: 'working',
  waiting: 'working',
  succeeded: 'completed',
  failed: 'failed',
  timedOut: 'failed',
  cancelled: 'cancelled',
  expired: 'failed',
}

/** A page of the tools as JSON. */
function listTools(cursors: Cursors, workflows: Workflows, after: string): string {
  const rest = workflows.list().filter(({ id }) => id > after)
  const page = rest.slice(0, toolsPerPage)
  const last = rest.length > page.length ? page.at(-1) : undefined
  return JSON.stringify({
    tools: page.map((each) => toTool(each, toToolName(each.id, workflows))),
    ...(last && { nextCursor: cursors.write(listName, last.id) }),
  })
}

/** MCP has objects only: another output is the member `result` of one. */
function toTool({ id, title, description, variables, output, deprecated }: Workflow, name: string): Tool {
  const other = name === id ? [] : [`Workflow \`${id}\`.`]
  const notes = [description ?? title, ...other, ...(deprecated ? ['Deprecated.'] : [])]
  const { root, $defs } = toToolSchema(output)
  const outputSchema = isObject(output)
    ? { ...root, ...$defs }
    : { type: 'object', properties: { result: root }, required: ['result'], ...$defs }
  const arguments_ = toToolSchema(variables)
  return {
    name,
    title,
    description: notes.join('\n\n'),
    inputSchema: { ...arguments_.root, ...arguments_.$defs, type: 'object' } as Tool['inputSchema'],
    outputSchema: outputSchema as NonNullable<Tool['outputSchema']>,
    execution: { taskSupport: 'optional' },
  }
}

function isObject({ type }: JsonSchema): boolean {
  return type === 'object'
}

const rootName = 'Value'
const definitions = '#/$defs/'

/**
 * The schema with all that it refers to in `$defs`: the SDK's clients compile the outputs of all tools together, where two
 * equal `$id`, as of the installation's workflow and the account's, make the whole list unreadable.
 */
function toToolSchema(schema: JsonSchema): { root: JsonSchema; $defs: { $defs?: JsonSchema } } {
  const components = toComponents(schema, rootName, withOpenTuples, definitions)
  const root = withReadableNames(components.get(rootName) as JsonSchema)
  // Only a recursive schema refers to its root.
  if (!JSON.stringify([...components.values()]).includes(`"${definitions}${rootName}"`)) components.delete(rootName)
  return { root, $defs: components.size === 0 ? {} : { $defs: Object.fromEntries(components) } }
}

/** The SDK's clients read schemas as draft-07, in which `items` is about each item of a tuple. */
function withOpenTuples(schema: JsonSchema): JsonSchema {
  const { prefixItems, items = true } = schema
  return Array.isArray(prefixItems) && items !== true
    ? { ...schema, items: { anyOf: [...prefixItems, items] } }
    : schema
}

const names = ['constructor', '__proto__', 'prototype']

/**
 * The SDK's clients refuse the whole list when a member of a tool's `properties` is a boolean or, with earlier versions of
 * Zod, has one of these names.
 */
function withReadableNames(schema: JsonSchema): JsonSchema {
  const properties = Object.entries(Object(schema.properties) as JsonSchema)
  if (properties.length === 0) return schema
  const members = properties.map(([name, member]) => [
    name,
    typeof member === 'boolean' ? booleanSchema(member) : member,
  ])
  const [refused, readable] = [true, false].map((isRefused) =>
    members.filter(([name]) => names.includes(String(name)) === isRefused),
  ) as [typeof members, typeof members]
  const patterns = Object.fromEntries(refused.map(([name, member]) => [`^${name}$`, member]))
  return {
    ...schema,
    properties: Object.fromEntries(readable),
    ...(refused.length > 0 && { patternProperties: { ...Object(schema.patternProperties), ...patterns } }),
  }
}

/** Follows the run until it ends, the client disconnects, the service stops, or `report` returns true. */
async function follow(
  { runs, feed }: ToolDependencies,
  { principal, stillAuthenticated, reserve }: ToolCaller,
  id: string,
  signal: AbortSignal,
  report?: (event: RunEvent) => Promise<boolean>,
): Promise<Run | undefined> {
  for await (const event of feed.events(id, 0, 1, signal)) {
    if (!(await stillAuthenticated())) throw new McpError(ErrorCode.InvalidRequest, `Unauthorized. Run ${id} goes on.`)
    if (event && (await report?.(event))) break
  }
  const found = await runs.measure(principal.accountId, id)
  return found && readSized(reserve, found)
}

/** Whether the run has left its worker, as it has while it waits for a person. */
function isReturned({ type, data, sequence }: RunEvent): boolean {
  return type === 'status' && (data.status === 'waiting' || (data.status === 'queued' && sequence > 1))
}

function waitsForPerson({ waitingFor }: Run): boolean {
  return waitingFor === 'answer' || waitingFor === 'secret' || waitingFor === 'setting'
}

/** What a person has to do before the run goes on; `undefined` if nothing. */
async function describeNeeded(dependencies: ToolDependencies, run: Run): Promise<string | undefined> {
  if (!waitsForPerson(run)) return undefined
  if (run.waitingFor === 'answer') return toQuestion(run, await findQuestions(dependencies, run))
  const operation = run.waitingFor === 'secret' ? 'putSecret' : 'putSetting'
  return `Run ${run.id} waits for a ${run.waitingFor}. ${run.waitingForDetail?.message} It goes on when the value is there: store it on the dashboard, under Settings and Secrets, or with ${operation}, unless an external store has it. Then read the run with getRun, or its result with tasks/result.`
}

async function findQuestions({ waits }: ToolDependencies, run: Run): Promise<Wait[]> {
  const latest = await waits.latestOfRun(run, 100)
  return latest.filter(({ kind, status }) => kind === 'answer' && status === 'open')
}

function toQuestion({ id }: Run, questions: readonly Wait[]): string {
  const described = questions.map(({ name, title, shown, deadline, declared }) => {
    const until = deadline === null ? '' : ` until ${new Date(deadline).toISOString()}`
    const details = { title, description: declared?.description, shown, schema: declared?.schema }
    return `"${name}"${until}: PUT /v1/execution/runs/${id}/waits/${encodeURIComponent(name)} with {"value": …}. ${JSON.stringify(details)}`
  })
  return `Run ${id} waits for an answer and goes on with it. Answer with completeWait, on the dashboard, or by a link of createWaitLink; then read the run with getRun, or its result with tasks/result. ${described.join(' ')}`
}

/** Progress must increase with each notification, also for events without progress and in another attempt. */
function nextPercent(last: number, { type, data }: RunEvent): number {
  const reported = type === 'progress' ? Number(data.percent) : 0
  return reported > last ? reported : last + 0.001
}

/** With the id of the run, so that a client whose time limit for calls has passed can take it up as a task. */
function describeEvent({ type, data }: RunEvent, runId: string): string {
  if (type === 'status') return `Run ${runId} is ${data.status}.`
  if (type === 'step') return `Step ${data.name}: ${data.state}.`
  if (type === 'artifact') return `File ${data.name} is stored.`
  return String(data.message ?? `${data.percent} percent`)
}

function toResult(run: Run | undefined, runId: string, workflow: Workflow | undefined): CallToolResult {
  const _meta = { [runIdMember]: runId }
  if (!run) return { ...toolError(`Run ${runId} was deleted.`), _meta }
  if (!isFinal(run.status)) return { ...toolError(`The service is stopping. Run ${runId} goes on.`), _meta }
  if (run.status !== 'succeeded') {
    const reason = run.error ? `: ${run.error.name}: ${run.error.message}` : run.reason ? ` (${run.reason})` : ''
    return { ...toolError(`Run ${runId} has ended as ${run.status}${reason}`), _meta }
  }
  const { output } = run
  const structuredContent = (workflow && isObject(workflow.output) ? output : { result: output }) as object
  const text = JSON.stringify(structuredContent)
  return { content: [{ type: 'text', text }], structuredContent: structuredContent as Record<string, unknown>, _meta }
}

function toToolError(name: string, result: Exclude<QueueResult, { kind: 'queued' }>): CallToolResult {
  if (result.kind === 'noSuchWorkflow') throw new McpError(ErrorCode.InvalidParams, `There is no tool ${name}.`)
  if (result.kind === 'tooManyQueuedRuns') {
    return toolError(`This account has reached its limit of ${result.queuedMax} queued runs. Try again later.`)
  }
  if (result.kind !== 'variablesInvalid') throw new Error(`A call without ${result.kind} got it.`)
  const errors = result.errors.map(({ pointer, detail }) => `${pointer || 'The arguments'} ${detail}`)
  return toolError(`The arguments are invalid. ${errors.join('; ')}. No run was queued.`)
}

function toolError(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}

// `/mcp`: the workflows as tools of the Model Context Protocol, by Streamable HTTP. Stateless: each POST has its own
// server, so that any process can serve it. API keys, scopes, limits and bodies are as for the operations of the API.

interface McpDependencies extends ToolDependencies, CallerDependencies {
  /** Responds with 421 to a request for a Host that is not the service's. */
  checkHost: RequestHandler
}

/** The scopes of the operations that the message stands for. */
const scopesByMethod = new Map<unknown, readonly string[]>([
  ['tools/list', ['workflows:read']],
  ['tools/call', ['runs:write', 'runs:read']],
  ['tasks/get', ['runs:read']],
  ['tasks/result', ['runs:read']],
  ['tasks/cancel', ['runs:write', 'runs:read']],
])

const message: Pick<Operation, 'body'> = {
  body: { isRaw: false, required: true, mediaTypes: ['application/json'], schemas: [], bytesMax: bodyBytesMax },
}

export function mcpHandler(dependencies: McpDependencies): RequestHandler {
  return (request, response, next) =>
    dependencies.checkHost(request, response, (error?: unknown) =>
      error ? next(error) : serve(dependencies, request, response).catch(next),
    )
}

async function serve(dependencies: McpDependencies, request: Request, response: Response): Promise<void> {
  const exchange: Exchange<Principal> = response.locals.exchange
  response.set('X-Document-Hash', executionContract.documentHash)
  if (request.method !== 'POST')
    throw new Problem({ kind: 'method-not-allowed', detail: 'This path has POST.' }, { Allow: 'POST' })
  // Browsers send it with every request of a page, also of one whose name leads to this service (DNS rebinding).
  if (request.headers.origin !== undefined) return refuse(response, 403)
  const caller = await admitCaller(dependencies, request, response)
  if (!caller) return
  const { principal, credential } = caller
  const body = await readBody(message as Operation, request, exchange.tenant)
  exchange.tenant?.unlockProcessing()
  if (Array.isArray(body?.value)) throw invalidBody('', 'must be one message')
  const { method } = Object(body?.value) as { method?: unknown }
  if (!caller.hasScopes(scopesByMethod.get(method) ?? [])) return refuse(response, 403)
  const stillAuthenticated = async () => (await dependencies.apiKeys.authenticate(credential)) !== undefined
  const logError = (err: unknown) => exchange.logError('tool call failed', { err })
  if (isJSONRPCRequest(body?.value)) {
    const { id } = body.value
    const invalid = (message: string) => {
      response.json({ jsonrpc: '2.0', id, error: { code: ErrorCode.InvalidParams, message } })
    }
    const { method } = body.value
    const checked = isChecked(method) ? schemasByMethod[method].safeParse(body.value) : undefined
    if (checked && !checked.success) {
      const [{ path, message: reason } = { path: [], message: 'is invalid' }] = checked.error.issues
      return invalid(`${path.join('.') || 'The message'}: ${reason}`)
    }
    if (checked?.data.method === 'tools/list') {
      const { cursor } = checked.data.params ?? {}
      const after = cursor === undefined ? '' : dependencies.cursors.read(listName, cursor)
      if (after === undefined) return invalid('cursor is not a cursor of this list')
      const visible = dependencies.workflows.current(principal.accountId)
      const make = () => listTools(dependencies.cursors, visible, after)
      const { bytes } = await representations.get(visible, `tools ${after}`, exchange.tenant, make)
      return sendResult(exchange, id, bytes)
    }
  }
  // Memory stays reserved until the client has read the result; other accounts do not wait for that.
  const unlockProcessing = () => exchange.tenant?.unlockProcessing()
  const reserve: Reserve = (bytes) => {
    const granted = exchange.tenant?.reserve(bytes * copiesOfOutput)
    if (granted) return granted.then(unlockProcessing)
    unlockProcessing()
    return undefined
  }
  const server = createToolServer(dependencies, { principal, stillAuthenticated, logError, reserve })
  const transport = new WebStandardStreamableHTTPServerTransport({})
  // A client that disconnects ends the wait; the run goes on.
  response.once('close', () => void server.close().catch(logError))
  await server.connect(transport as Transport)
  await respond(response, await transport.handleRequest(toWebRequest(request), { parsedBody: body?.value }))
}

const schemasByMethod = {
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
  'tasks/get': GetTaskRequestSchema,
  'tasks/result': GetTaskPayloadRequestSchema,
  'tasks/cancel': CancelTaskRequestSchema,
}

function isChecked(method: string): method is keyof typeof schemasByMethod {
  return Object.hasOwn(schemasByMethod, method)
}

/** Checks the headers as the SDK's transport does. @param result JSON. */
async function sendResult({ request, response, tenant }: Exchange, id: RequestId, result: Uint8Array): Promise<void> {
  const version = request.headers['mcp-protocol-version']
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) {
    const supported = SUPPORTED_PROTOCOL_VERSIONS.join(', ')
    throw new Problem({ kind: 'invalid-request', detail: `MCP-Protocol-Version must be one of ${supported}.` })
  }
  if (!request.accepts('json'))
    throw new Problem({ kind: 'not-acceptable', detail: 'The list of tools is application/json.' })
  await tenant?.reserve(result.length)
  const start = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  response.type('json').set('Content-Length', String(Buffer.byteLength(start) + result.length + 1))
  response.write(start)
  response.write(result)
  response.end('}')
  tenant?.unlockProcessing()
}

/** A result has the output as structured content and as text, and is itself written as JSON. */
const copiesOfOutput = 3

function toWebRequest({ method, headers }: Request): globalThis.Request {
  const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)])
  return new globalThis.Request('http://localhost/mcp', { method, headers: sent })
}

/** Reads no more of the answer than the client does. */
async function respond(response: Response, { status, headers, body }: globalThis.Response): Promise<void> {
  response.status(status)
  // The client may have asked to close the connection.
  for (const [name, value] of headers) if (name !== 'connection') response.setHeader(name, value)
  response.flushHeaders()
  if (!body) return void response.end()
  // A client that disconnects destroys the response.
  await pipeline(Readable.fromWeb(body as never), response).catch(() => {})
}
