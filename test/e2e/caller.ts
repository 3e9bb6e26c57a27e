/** What a caller does with the Execution API in the journeys, through the generated client. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { createExecutionV1Client } from '../../generated/execution.v1/client.ts'
import type { components } from '../../generated/execution.v1/types.ts'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { type TestAccount, until } from '../support/service.ts'

export type Client = ReturnType<typeof createExecutionV1Client>
export type Run = components['schemas']['Run']
type RunEvent = components['schemas']['RunEvent']

export function clientOf({ executionUrl }: Pick<ServiceProcess, 'executionUrl'>, apiKey: string): Client {
  return createExecutionV1Client({ apiKey, baseUrl: executionUrl })
}

type Query = NonNullable<Parameters<Client['queueRemoteRun']>[0]['params']['query']>
type Headers = NonNullable<Parameters<Client['queueRemoteRun']>[0]['params']['header']>

export async function queue(
  client: Client,
  workflowId: string,
  variableData: object,
  query: Query = {},
  header: Headers = {},
) {
  const body = { variableData: { ...variableData } }
  const { data, response } = await client.queueRemoteRun({ params: { path: { workflowId }, query, header }, body })
  if (!data) throw new Error(`The run was not queued: ${response.status}`)
  return { run: data, response }
}

export async function read(client: Client, { id }: Pick<Run, 'id'>): Promise<Run> {
  const { data } = await client.getRun({ params: { path: { runId: id } } })
  if (!data) throw new Error(`There is no run ${id}.`)
  return data
}

export function untilStatus(client: Client, run: Pick<Run, 'id'>, status: Run['status']): Promise<Run> {
  return until(`run ${run.id} is ${status}`, async () => {
    const now = await read(client, run)
    return now.status === status && now
  })
}

/** Follows the run from after an event on; `undefined` when there is nothing to follow any more (204). */
export async function follow(client: Client, { id }: Pick<Run, 'id'>, after?: string) {
  const header = after === undefined ? {} : { 'Last-Event-ID': after }
  const { data, response } = await client.streamRunEvents({
    params: { path: { runId: id }, header },
    parseAs: 'stream',
  })
  if (response.status === 204) return undefined
  if (!data) throw new Error(`The run cannot be followed: ${response.status}`)
  return eventsOf(data as unknown as ReadableStream<BufferSource>)
}

/** The events of a stream as they come; leaving the loop closes the connection. */
async function* eventsOf(stream: ReadableStream<BufferSource>): AsyncGenerator<{ id: string; data: RunEvent }> {
  let text = ''
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    text += part
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]),
      )
      text = text.slice(end + 2)
      if (fields.has('id')) yield { id: fields.get('id') ?? '', data: JSON.parse(fields.get('data') ?? '') }
    }
  }
}

export async function collect<Item>(items: AsyncIterable<Item> | undefined): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items ?? []) all.push(item)
  return all
}

/** An installation of the test's own, for those that end its service. */
export async function ownInstallation({ onTestFinished }: TestContext, changes: Record<string, string> = {}) {
  const own = await newInstallation({ LEASE_SECONDS: '3', ...changes })
  onTestFinished(own.remove)
  return own
}

/** A caller with an account of its own. */
export async function callerOf(of: Installation, at: ServiceProcess) {
  const account: TestAccount = await of.createAccount()
  return { account, client: clientOf(at, account.key) }
}

let files = 0

/** A file that does not exist until it is asked for; workflows wait for it. */
export function fileIn({ dataDirectory }: Installation) {
  files += 1
  const file = join(dataDirectory, `release-${files}`)
  return { file, release: () => writeFileSync(file, '') }
}
