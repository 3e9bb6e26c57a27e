/** An MCP server for one request: the caller's workflows as tools. A call queues a run and follows it to its end. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import { Problem } from '../../contract/problem.ts'
import type { Principal } from '../../domain/api-keys/api-key.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import type { Run, RunEvent } from '../../domain/runs/run.ts'
import type { RunFeed } from '../../domain/runs/run-feed.ts'
import { isFinal } from '../../domain/runs/run-state.ts'
import type { QueueResult, Runs } from '../../domain/runs/runs.ts'
import type { JsonSchema, Workflow } from '../../domain/workflows/workflow.ts'
import { executionContract } from '../../openapi/served-documents.ts'
import type { Cursors } from '../../storage/cursors.ts'
import { StoreUnavailable } from '../../storage/store.ts'

export interface ToolDependencies {
  workflows: WorkflowRegistry
  runs: Runs
  feed: RunFeed
  cursors: Cursors
}

export interface ToolCaller {
  principal: Principal
  /** Whether the API key would be accepted now. */
  stillAuthenticated(): Promise<boolean>
  logError(error: unknown): void
}

const toolsPerPage = 100
const listName = 'mcp-tools'

/** The member of `_meta` with the id of a call's run. */
export const runIdMember = 'execution-service/runId'

export function createToolServer(dependencies: ToolDependencies, caller: ToolCaller): Server {
  const { version } = (executionContract.document as unknown as { info: { version: string } }).info
  const server = new Server({ name: 'execution-service', version }, { capabilities: { tools: {} } })
  const visible = dependencies.workflows.current(caller.principal.accountId)

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const { cursor } = params ?? {}
    const after = cursor === undefined ? '' : dependencies.cursors.read(listName, cursor)
    if (after === undefined) throw new McpError(ErrorCode.InvalidParams, 'cursor is not a cursor of this list')
    const rest = visible.list().filter(({ id }) => id > after)
    const page = rest.slice(0, toolsPerPage)
    const last = rest.length > page.length ? page.at(-1) : undefined
    return { tools: page.map(toTool), ...(last && { nextCursor: dependencies.cursors.write(listName, last.id) }) }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const token = _meta?.progressToken
    let percent = 0
    const report = async (event: RunEvent) => {
      if (token === undefined) return
      percent = nextPercent(percent, event)
      const progress = { progressToken: token, progress: percent, total: 100, message: describeEvent(event) }
      await sendNotification({ method: 'notifications/progress', params: progress })
    }
    try {
      const queued = await dependencies.runs.queue(caller.principal, {
        workflowId: params.name,
        variables: params.arguments ?? {},
        idempotencyKey: undefined,
        delaySeconds: 0,
        expiresInSeconds: undefined,
        priority: 0,
      })
      if (queued.kind !== 'queued') return toToolError(params.name, queued)
      const run = await follow(dependencies, caller, queued.run, signal, report)
      return toResult(run, queued.run.id, visible.get(params.name))
    } catch (error) {
      if (error instanceof McpError) throw error
      if (error instanceof Problem) return toolError(error.problem.detail)
      caller.logError(error)
      const isDown = error instanceof StoreUnavailable
      throw new McpError(ErrorCode.InternalError, isDown ? 'The store is unavailable.' : 'The service failed.')
    }
  })
  return server
}

/** MCP has objects only: another output is the member `result` of one. */
function toTool({ id, title, description, variables, output, deprecated }: Workflow): Tool {
  const notes = [description ?? title, ...(deprecated ? ['Deprecated.'] : [])]
  return {
    name: id,
    title,
    description: notes.join('\n\n'),
    inputSchema: { ...variables, type: 'object' } as Tool['inputSchema'],
    outputSchema: (isObject(output) ? output : wrapped(output)) as NonNullable<Tool['outputSchema']>,
  }
}

function isObject({ type }: JsonSchema): boolean {
  return type === 'object'
}

/** Definitions stay at the root, to which references lead. */
function wrapped({ $schema: _, $defs, definitions, ...output }: JsonSchema): JsonSchema {
  const kept = { ...($defs !== undefined && { $defs }), ...(definitions !== undefined && { definitions }) }
  return { type: 'object', properties: { result: output }, required: ['result'], ...kept }
}

/** Follows the run until it ends, the client disconnects, or the service stops. */
async function follow(
  { runs, feed }: ToolDependencies,
  { principal, stillAuthenticated }: ToolCaller,
  { id }: Run,
  signal: AbortSignal,
  report: (event: RunEvent) => Promise<void>,
): Promise<Run | undefined> {
  for await (const event of feed.events(id, 0, 1, signal)) {
    if (!(await stillAuthenticated())) throw new McpError(ErrorCode.InvalidRequest, `Unauthorized. Run ${id} goes on.`)
    if (event) await report(event)
  }
  return runs.get(principal.accountId, id)
}

/** Progress must increase with each notification, also for events without progress and in another attempt. */
function nextPercent(last: number, { type, data }: RunEvent): number {
  const reported = type === 'progress' ? Number(data.percent) : 0
  return reported > last ? reported : last + 0.001
}

function describeEvent({ type, data }: RunEvent): string {
  if (type === 'status') return `Run is ${data.status}.`
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
