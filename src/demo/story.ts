/** What the demo shows: each request as a `curl` command, the same request made, and what was answered. */
import { randomUUID } from 'node:crypto'
import { styleText } from 'node:util'
import type { components } from '../../generated/execution.v1/types.ts'
import { eventsOf, inWords } from './events.ts'
import { curlOf, type Request, send } from './request.ts'
import { DemoFailed } from './service.ts'

type Run = components['schemas']['Run']
type WorkflowList = components['schemas']['WorkflowList']

export interface Stage {
  executionUrl: string
  siteUrl: string
  /** What the website's pages for members ask for. */
  siteToken: string
  apiKey: string
  say(text: string): void
  signal: AbortSignal
}

const runSecondsMax = 60
const otherKey = '00000000-0000-4000-8000-000000000000'

/** @throws {DemoFailed} when an answer or a run is not what it should be. */
export async function tellStory(stage: Stage): Promise<void> {
  const { say } = stage
  say(
    chapter(
      '1. Which workflows are there?',
      'Each is a file in examples/workflows. The API key was made for this demo, by `keys create --name demo`.',
    ),
  )
  await listWorkflows(stage)

  say(
    chapter(
      '2. Queue a run',
      'check-links crawls a little website that this demo has brought along. Its token is a secret: the service stores',
      'it encrypted and shows it nowhere. The Idempotency-Key makes it safe to send this twice: there will be one run.',
    ),
  )
  const { id } = await queue(stage)

  say(
    chapter(
      '3. Follow it live',
      'One page is overloaded at first, so that attempt fails. The next one goes on where it was.',
    ),
  )
  await follow(stage, id)

  say(chapter('4. Read how it ended', 'Some members of the answer: where the token was is a mask.'))
  await read(stage, id)

  say(chapter('5. Wait for a short run', 'With a preference to wait, the answer is the finished run.'))
  await queueAndWait(stage)

  say(chapter('6. A wrong key', 'It is refused without a word on why.'))
  const refusal = await perform(stage, get(stage, '/v1/execution/workflows', otherKey), 401)
  say(`  ${await refusal.text()}`)
}

async function listWorkflows(stage: Stage): Promise<void> {
  const answer = await perform(stage, get(stage, '/v1/execution/workflows'), 200)
  const { data } = (await answer.json()) as WorkflowList
  const width = Math.max(0, ...data.map(({ id }) => id.length))
  for (const { id, title } of data) stage.say(`  ${id.padEnd(width)}  ${title}`)
  const missing = ['check-links', 'count-words'].filter((id) => !data.some((workflow) => workflow.id === id))
  if (missing.length === 0) return
  throw new DemoFailed(
    `The demo needs ${missing.join(' and ')}, which WORKFLOWS_DIR does not have: unset WORKFLOWS_DIR.`,
  )
}

async function queue(stage: Stage): Promise<Run> {
  const variables = { url: `${stage.siteUrl}/`, token: stage.siteToken }
  const request = put(stage, 'check-links', variables, { 'Idempotency-Key': `demo-${randomUUID().slice(0, 8)}` })
  const run = (await (await perform(stage, request, 202)).json()) as Run
  stage.say(`  run ${run.id} is ${run.status}`)
  return run
}

async function follow(stage: Stage, id: string): Promise<void> {
  const inTime = AbortSignal.any([stage.signal, AbortSignal.timeout(runSecondsMax * 1000)])
  const request = { ...get(stage, `/v1/execution/runs/${id}/events`), streamed: true }
  try {
    let start: number | undefined
    for await (const event of eventsOf(await perform({ ...stage, signal: inTime }, request, 200))) {
      const at = Date.parse(event.at)
      start ??= at
      const words = inWords(event)
      if (words) stage.say(`  ${styleText('dim', `${((at - start) / 1000).toFixed(2).padStart(6)} s`)}  ${words}`)
    }
  } catch (error) {
    stage.signal.throwIfAborted()
    if (inTime.aborted) throw new DemoFailed(`Run ${id} has not ended within ${runSecondsMax} s.`)
    throw error instanceof DemoFailed ? error : new DemoFailed(`The events of run ${id} broke off.`)
  }
}

async function read(stage: Stage, id: string): Promise<void> {
  const answer = await perform(stage, get(stage, `/v1/execution/runs/${id}`), 200)
  show(stage, (await answer.json()) as Run)
}

async function queueAndWait(stage: Stage): Promise<void> {
  const request = put(stage, 'count-words', { path: 'examples/README.md', top: 3 }, { Prefer: 'wait=10' })
  show(stage, (await (await perform(stage, request, 200)).json()) as Run)
}

/** Prints what tells most of a run; one that has not succeeded ends the demo. */
function show(stage: Stage, { workflowId, status, attempts, variableData, output, error }: Run): void {
  stage.say(indented(jsonOf({ status, attempts, variableData, output, error })))
  if (status === 'succeeded') return
  throw new DemoFailed(`The run of ${workflowId} has ${status}${error ? `: ${error.message}` : ''}.`)
}

/** Prints the request, makes it, prints the answer's status; another status than `expected` ends the demo. */
async function perform({ say, signal }: Stage, request: Request, expected: number): Promise<Response> {
  say(`\n${styleText('cyan', indented(curlOf(request)))}\n`)
  const answer = await send(request, signal).catch((error) => {
    signal.throwIfAborted()
    throw new DemoFailed(`${request.url} did not answer (${error.cause?.code ?? error.message}).`)
  })
  say(`  ${styleText(answer.ok ? 'green' : 'yellow', `${answer.status} ${answer.statusText}`)}`)
  if (answer.status === expected) return answer
  throw new DemoFailed(`${request.method} ${request.url} was to be answered with ${expected}: ${await answer.text()}`)
}

/** A request that a person may make when the demo is over; it takes a while, so that it can be watched and cancelled. */
export function longRun(stage: Stage): string {
  return indented(curlOf(put(stage, 'build-manifest', { directory: 'node_modules', pauseMilliseconds: 200 }, {})))
}

function get({ executionUrl, apiKey }: Stage, path: string, key = apiKey): Request {
  return { method: 'GET', url: `${executionUrl}${path}`, headers: { Authorization: `Bearer ${key}` } }
}

function put(stage: Stage, workflowId: string, variableData: object, headers: Record<string, string>): Request {
  return {
    method: 'PUT',
    url: `${stage.executionUrl}/v1/execution/queue-remote/${workflowId}`,
    headers: { Authorization: `Bearer ${stage.apiKey}`, 'Content-Type': 'application/json', ...headers },
    body: { variableData },
  }
}

function chapter(title: string, ...comment: string[]): string {
  return [`\n${styleText('bold', title)}`, ...comment.map((line) => styleText('dim', line))].join('\n')
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}

const columnsMax = 100

/** JSON for people: what fits on a line is on one. */
function jsonOf(value: unknown): string {
  const line = JSON.stringify(value)
  if (line.length <= columnsMax || typeof value !== 'object' || value === null) return line
  if (Array.isArray(value)) return `[\n${value.map((each) => indented(jsonOf(each))).join(',\n')}\n]`
  const members = Object.entries(value).map(([name, each]) => indented(`${JSON.stringify(name)}: ${jsonOf(each)}`))
  return `{\n${members.join(',\n')}\n}`
}
