/** The runs of an account, as the `runs` commands reach them: in the store, or over the API of a service. */
import { openDomain } from '../app.ts'
import type { ExecutionClient } from '../client/index.ts'
import { readConfig } from '../config/config.ts'
import { stringify } from '../contract/i-json.ts'
import { describeRefusedStart, toParameterErrors } from '../domain/queue/queue-problems.ts'
import { fromParameters, repeatedOptions } from '../domain/queue/run-options.ts'
import type { ListRequest } from '../domain/run-api/list-request.ts'
import { toResponse } from '../domain/run-api/run-response.ts'
import type { QueueResult } from '../domain/run-api/runs.ts'
import type { Run } from '../domain/runs/run.ts'
import type { RunStatus } from '../domain/runs/run-state.ts'
import { openLog } from '../telemetry/log.ts'
import { type AccountOptions, findAccountId, requireStore } from './accounts.ts'
import { connect, listErrors, refusal } from './api-access.ts'
import { announce, CommandError } from './output.ts'

export type ShownRun = ReturnType<typeof toResponse>

export interface ShownEvent {
  at: string
  type: string
  data: Record<string, unknown>
}

export interface RunFilters {
  workflowId?: string | undefined
  status?: RunStatus[] | undefined
  tag?: string[] | undefined
  limit: number
}

/** By the names of the parameters of `queueRemoteRun`. */
type RunParameters = Readonly<Record<string, string | number | string[]>>

export interface RunAccess {
  /** Newest first. */
  list(filters: RunFilters): Promise<ShownRun[]>
  get(id: string): Promise<ShownRun>
  /** Past and new ones, until the run has ended. */
  events(id: string): AsyncIterable<ShownEvent>
  cancel(id: string): Promise<ShownRun>
  rerun(id: string, fromStep: string | undefined): Promise<ShownRun>
  queue(workflowId: string, variables: Record<string, unknown>, parameters: RunParameters): Promise<ShownRun>
}

export interface RunCommandOptions extends AccountOptions {
  url?: string
}

/** @param scope that the key of `--url` needs. */
export async function withRuns(
  options: RunCommandOptions,
  scope: string,
  act: (runs: RunAccess) => Promise<void>,
): Promise<void> {
  const { url } = options
  if (url !== undefined) return act(remoteRuns(connect({ ...options, url }, scope), scope))
  const config = readConfig(process.env)
  await requireStore(config)
  const { domain, close } = await announce('Opening the store', openDomain(config, openLog({ LOG_LEVEL: 'silent' })))
  try {
    await act(storedRuns(domain, await findAccountId(domain.accounts, options)))
  } finally {
    await close()
  }
}

function remoteRuns(client: ExecutionClient, scope: string): RunAccess {
  const expect = <Data>({ data, error, response }: Answered<Data>): NonNullable<Data> => {
    if (data === undefined || data === null) throw refusal(error, response, scope)
    return data
  }
  const path = (runId: string) => ({ params: { path: { runId } } })
  return {
    async list({ limit, workflowId, status, tag }) {
      const runs: ShownRun[] = []
      const query = { limit: Math.min(limit, 100), ...defined({ workflowId, status, tag }) }
      for await (const run of client.runs.list(query)) if (runs.push(run) >= limit) break
      return runs
    },
    get: async (id) => expect(await client.getRun(path(id))),
    async *events(id) {
      for await (const { at, type, sequence: _, ...data } of client.runs.events(id)) yield { at, type, data }
    },
    cancel: async (id) => expect(await client.cancelRun(path(id))),
    rerun: async (id, fromStep) => expect(await client.rerunRun({ ...path(id), body: defined({ fromStep }) })),
    async queue(workflowId, variableData, query) {
      const params = { path: { workflowId }, query }
      return expect(await client.queueRemoteRun({ params, body: { variableData } }))
    },
  }
}

interface Answered<Data> {
  data?: Data
  error?: unknown
  response?: Response | undefined
}

/** Without the members that are undefined. */
function defined<Members extends object>(members: Members): { [Name in keyof Members]?: NonNullable<Members[Name]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never
}

type Domain = Awaited<ReturnType<typeof openDomain>>['domain']

function storedRuns({ runs, feed }: Pick<Domain, 'runs' | 'feed'>, accountId: string): RunAccess {
  const show = (run: Run | undefined, id: string): ShownRun => {
    if (!run) throw new CommandError(`There is no run ${id} in this account.`)
    return JSON.parse(stringify(toResponse(run, {})))
  }
  const get = async (id: string) => {
    const run = await runs.getWithWaiting(accountId, id)
    show(run, id)
    return run as Run
  }
  const queued = (result: QueueResult): ShownRun => {
    if (result.kind !== 'queued') throw new CommandError(describeRefused(result))
    return show(result.run, result.run.id)
  }
  const operator = { accountId, apiKeyId: null }
  return {
    async list({ limit, ...filters }) {
      const found: ShownRun[] = []
      for (let cursor: string | undefined; found.length < limit; ) {
        const request: ListRequest = { ...filters, limit: Math.min(100, limit - found.length), cursor }
        const page = await runs.list(accountId, request)
        found.push(...(page?.runs ?? []).map((run) => show(run, run.id)))
        if (!page?.nextCursor) break
        cursor = page.nextCursor
      }
      return found
    },
    get: async (id) => show(await get(id), id),
    async *events(id) {
      const run = await get(id)
      const never = new AbortController()
      for await (const event of feed.events(run.id, 0, quietSeconds, never.signal))
        if (event) yield { at: new Date(event.at).toISOString(), type: event.type, data: event.data }
    },
    cancel: async (id) => show(await runs.cancel(accountId, id), id),
    async rerun(id, fromStep) {
      const finished = await get(id)
      if (finished.finishedAt === null)
        throw new CommandError(`Run ${id} is ${finished.status}: wait for its end, or cancel it.`)
      const { workflowId, variables } = finished
      const start = fromStep === undefined ? undefined : await runs.readStart(finished, fromStep, operator, variables)
      if (start && 'refused' in start) throw new CommandError(`--from-step ${describeRefusedStart(start)}.`)
      const repeated = { ...repeatedOptions(finished), workflowId, variables, secretsFrom: id, rerunOf: id }
      return queued(await runs.queue(operator, { ...repeated, start }))
    },
    async queue(workflowId, variables, parameters) {
      return queued(await runs.queue(operator, { workflowId, variables, ...fromParameters(parameters) }))
    },
  }
}

const quietSeconds = 15

function describeRefused(refused: Exclude<QueueResult, { kind: 'queued' }>): string {
  switch (refused.kind) {
    case 'noSuchWorkflow':
      return 'The account has no such workflow: `workflows list` shows them.'
    case 'tooManyQueuedRuns':
      return `The account has reached its limit of ${refused.queuedMax} queued runs.`
    case 'runDeleted':
    case 'idempotencyConflict':
      return 'The run was not queued.'
    default:
      return ['The run was not queued:', ...listErrors(toParameterErrors(refused))].join('\n')
  }
}
