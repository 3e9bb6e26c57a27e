/** The commands `runs list`, `show`, `follow`, `cancel`, `rerun` and `queue`: in the store, or with `--url` by the API. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { oneLine } from '../domain/one-line.ts'
import { parameterNames } from '../domain/queue/run-options.ts'
import { transitions } from '../domain/runs/run-state.ts'
import { CommandError, print, table } from './output.ts'
import { type RunAccess, type RunCommandOptions, type ShownEvent, type ShownRun, withRuns } from './run-access.ts'

interface ListOptions extends RunCommandOptions {
  workflow?: string
  status?: string[]
  tag?: string[]
  limit: string
}

type RunStatus = keyof typeof transitions

const limitMax = 10_000

export async function listRuns(options: ListOptions): Promise<void> {
  const limit = Number(options.limit)
  if (!(Number.isInteger(limit) && limit > 0 && limit <= limitMax))
    throw new CommandError(`--limit is "${options.limit}": give a number from 1 to ${limitMax}.`)
  const unknown = options.status?.find((status) => !Object.hasOwn(transitions, status))
  if (unknown !== undefined)
    throw new CommandError(`--status is "${unknown}": give one of ${Object.keys(transitions).join(', ')}.`)
  const filters = { workflowId: options.workflow, status: options.status as RunStatus[] | undefined, tag: options.tag }
  await withRuns(options, 'runs:read', async (runs) => {
    const found = await runs.list({ ...filters, limit })
    if (options.json) return print(JSON.stringify(found))
    if (found.length === 0) return print('No runs. Queue one with `runs queue WORKFLOW`.')
    print(table(found.map(toRow)))
  })
}

function toRow({ id, workflowId, status, reason, waitingFor, attempts, createdAt, error }: ShownRun) {
  const why = error?.message ?? waitingFor ?? reason ?? ''
  return { id, workflow: workflowId, status, attempts, queued: createdAt, why: oneLine(why).slice(0, 60) }
}

export async function showRun(id: string, options: RunCommandOptions): Promise<void> {
  await withRuns(options, 'runs:read', async (runs) => show(await runs.get(id), options))
}

/** Exits with 1 if the run does not succeed. */
export async function followRun(id: string, options: RunCommandOptions): Promise<void> {
  await withRuns(options, 'runs:read', (runs) => follow(runs, id, options))
}

export async function cancelRun(id: string, options: RunCommandOptions): Promise<void> {
  await withRuns(options, 'runs:write', async (runs) => {
    const run = await runs.cancel(id)
    if (options.json) return print(JSON.stringify(run))
    if (run.status === 'cancelled') return print(`Cancelled ${id}.`)
    print(run.cancelRequested ? `Run ${id} is asked to stop.` : `Run ${id} has ended as ${run.status} already.`)
  })
}

interface QueueCommandOptions extends RunCommandOptions {
  follow?: boolean
}

export async function rerunRun(id: string, options: QueueCommandOptions & { fromStep?: string }): Promise<void> {
  await withRuns(options, 'runs:write', async (runs) => onQueued(runs, await runs.rerun(id, options.fromStep), options))
}

export async function queueRun(
  workflowId: string,
  options: QueueCommandOptions & { variables: string; tag?: string[]; option?: string[] },
): Promise<void> {
  const variables = await readVariables(options.variables)
  const parameters = {
    ...Object.fromEntries((options.option ?? []).map(parseOption)),
    ...(options.tag && { tag: options.tag }),
  }
  await withRuns(options, 'runs:write', async (runs) =>
    onQueued(runs, await runs.queue(workflowId, variables, parameters), options),
  )
}

function parseOption(given: string): [string, string | number] {
  const [, name, value = ''] = /^(\w+)=(.*)$/s.exec(given) ?? []
  if (name === undefined || !parameterNames.has(name))
    throw new CommandError(
      `--option is "${given}": give a name and a value. Names are ${[...parameterNames].join(', ')}.`,
    )
  return [name, /^-?\d{1,9}$/.test(value) ? Number(value) : value]
}

/** JSON, `@` and a file that has it, or `-` for the standard input, which keeps secrets out of the list of processes. */
async function readVariables(given: string): Promise<Record<string, unknown>> {
  const json = given === '-' ? await text(process.stdin) : given.startsWith('@') ? await read(given.slice(1)) : given
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // The message of the parser repeats a part of the text, which may be a secret.
  }
  throw new CommandError('--variables must be a JSON object, such as \'{"path": "README.md"}\'.')
}

function read(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: Error) => {
    throw new CommandError(`The file of --variables cannot be read: ${error.message}.`)
  })
}

async function onQueued(runs: RunAccess, run: ShownRun, options: QueueCommandOptions): Promise<void> {
  if (options.follow) return follow(runs, run.id, options)
  if (options.json) return print(JSON.stringify(run))
  print(`Queued ${run.id}. \`runs follow ${run.id}\` shows what it does.`)
}

async function follow(runs: RunAccess, id: string, options: RunCommandOptions): Promise<void> {
  for await (const event of runs.events(id)) print(options.json ? JSON.stringify(event) : oneLine(describeEvent(event)))
  const run = await runs.get(id)
  if (!options.json) show(run, options)
  if (run.status !== 'succeeded') process.exitCode = 1
}

function describeEvent({ at, type, data }: ShownEvent): string {
  const time = at.slice(11, 19)
  switch (type) {
    case 'status':
      return `${time} ${data.status}${data.reason ? ` (${data.reason})` : ''}`
    case 'log':
      return `${time}   ${data.level === 'info' ? '' : `${data.level}: `}${data.message}`
    case 'progress':
      return `${time}   ${data.percent} %${data.message ? ` ${data.message}` : ''}`
    case 'step':
      return `${time}   ${data.name} ${data.state}`
    default:
      return `${time}   ${type} ${data.name ?? ''}`
  }
}

function show(run: ShownRun, { json }: RunCommandOptions): void {
  if (json) return print(JSON.stringify(run))
  const { id, workflowId, workflowVersion, status, reason, attempts, tags, error, output, progress } = run
  const lines: [string, string | null][] = [
    ['run', id],
    ['workflow', `${workflowId} ${workflowVersion}`],
    ['status', reason === null ? status : `${status} (${reason})`],
    ['waits for', run.waitingForDetail?.message ?? run.waitingFor],
    ['attempts', `${attempts}`],
    ['tags', tags.length === 0 ? null : tags.join(', ')],
    ['queued', run.createdAt],
    ['started', run.startedAt],
    ['finished', run.finishedAt],
    ['progress', progress && `${progress.percent} %${progress.message ? ` ${progress.message}` : ''}`],
    ['error', error && `${error.name}: ${error.message}`],
    ['output', status === 'succeeded' ? JSON.stringify(output) : null],
  ]
  for (const [name, value] of lines) if (value !== null) print(name.padEnd(10) + oneLine(value))
}
