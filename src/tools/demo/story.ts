/** What the demo shows: each request as a `curl` command, the same request made, and what was answered. */
import { randomUUID } from 'node:crypto'
import { styleText } from 'node:util'
import type { components } from '../../../generated/execution.v1/types.ts'
import { parseEvents } from '../../client/event-stream.ts'
import { tellBrowserStory } from './browser-story.ts'
import { inWords, type RunEvent } from './events.ts'
import { curlOf } from './request.ts'
import { DemoFailed } from './service.ts'
import { chapter, get, indented, perform, put, type Run, type Stage, show } from './stage.ts'

type WorkflowList = components['schemas']['WorkflowList']

const shownWorkflows = ['check-links', 'count-words', 'shop-sign-in', 'shop-orders']
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

  await tellBrowserStory(stage, '6. A browser that stays signed in')

  say(chapter('7. A wrong key', 'It is refused without a word on why.'))
  const refusal = await perform(stage, get(stage, '/v1/execution/workflows', otherKey), 401)
  say(`  ${await refusal.text()}`)
}

async function listWorkflows(stage: Stage): Promise<void> {
  const answer = await perform(stage, get(stage, '/v1/execution/workflows'), 200)
  const { data } = (await answer.json()) as WorkflowList
  const width = Math.max(0, ...data.map(({ id }) => id.length))
  for (const { id, title } of data) stage.say(`  ${id.padEnd(width)}  ${title}`)
  const missing = shownWorkflows.filter((id) => !data.some((workflow) => workflow.id === id))
  if (missing.length === 0) return
  throw new DemoFailed(`The demo needs ${missing.join(', ')}, which WORKFLOWS_DIR does not have: unset WORKFLOWS_DIR.`)
}

async function queue(stage: Stage): Promise<Run> {
  const variables = { url: `${stage.site.url}/`, token: stage.siteToken }
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
    const { body } = await perform({ ...stage, signal: inTime }, request, 200)
    for await (const data of body ? parseEvents(body) : []) {
      const event: RunEvent = JSON.parse(data)
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

/** A request that a person may make when the demo is over; it takes a while, so that it can be watched and cancelled. */
export function longRun(stage: Stage): string {
  return indented(curlOf(put(stage, 'build-manifest', { directory: 'node_modules', pauseMilliseconds: 200 }, {})))
}
