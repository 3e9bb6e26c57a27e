/** What the demo's chapters share: each request is shown as a `curl` command, made, and its answer shown. */
import { styleText } from 'node:util'
import type { Site } from '../../../examples/site/site.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { curlOf, type Request, send } from './request.ts'
import { DemoFailed } from './service.ts'

export type Run = components['schemas']['Run']

export interface Stage {
  executionUrl: string
  browserContextUrl: string
  site: Site
  /** What the website's pages for members ask for. */
  siteToken: string
  /** Of the website's customer. */
  sitePassword: string
  apiKey: string
  /** Why there is no browser for runs, in a sentence; undefined where there is one. */
  browserMissing: Promise<string | undefined>
  say(text: string): void
  signal: AbortSignal
}

/** Prints the request, makes it, prints the answer's status; another status than `expected` ends the demo. */
export async function perform({ say, signal }: Stage, request: Request, expected: number): Promise<Response> {
  say(`\n${styleText('cyan', indented(curlOf(request)))}\n`)
  const answer = await send(request, signal).catch((error) => {
    signal.throwIfAborted()
    throw new DemoFailed(`${request.url} did not answer (${error.cause?.code ?? error.message}).`)
  })
  say(`  ${styleText(answer.ok ? 'green' : 'yellow', `${answer.status} ${answer.statusText}`)}`)
  if (answer.status === expected) return answer
  throw new DemoFailed(`${request.method} ${request.url} was to be answered with ${expected}: ${await answer.text()}`)
}

/** Prints what tells most of a run; one that has not succeeded ends the demo. */
export function show(stage: Stage, { workflowId, status, attempts, variableData, output, error }: Run): void {
  stage.say(indented(jsonOf({ status, attempts, variableData, output, error })))
  if (status === 'succeeded') return
  throw new DemoFailed(`The run of ${workflowId} has ${status}${error ? `: ${error.message}` : ''}.`)
}

export function get({ executionUrl, apiKey }: Stage, path: string, key = apiKey): Request {
  return { method: 'GET', url: `${executionUrl}${path}`, headers: { Authorization: `Bearer ${key}` } }
}

export function put(stage: Stage, workflowId: string, variableData: object, headers: Record<string, string>): Request {
  return {
    method: 'PUT',
    url: `${stage.executionUrl}/v1/execution/queue-remote/${workflowId}`,
    headers: { Authorization: `Bearer ${stage.apiKey}`, 'Content-Type': 'application/json', ...headers },
    body: { variableData },
  }
}

export function chapter(title: string, ...comment: string[]): string {
  return [`\n${styleText('bold', title)}`, ...comment.map((line) => styleText('dim', line))].join('\n')
}

export function indented(text: string): string {
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
