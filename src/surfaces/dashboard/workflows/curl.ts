/** Commands that do over the APIs what a page does, for a shell. */
import type { PersistContext } from '../../../domain/runs/run.ts'

/** Stands where whoever uses the command puts a key. */
const placeholder = '<API_KEY>'

const bearer = (key: string) => `-H 'Authorization: Bearer ${key}'`
const apiKey = bearer(placeholder)

/** A browser context, and when a run changes it, as queueRemoteRun's query has them. */
export interface WithContext {
  browserContextId: string
  persistContext: PersistContext
}

interface Queueing {
  key?: string
  browserContext?: WithContext | undefined
}

/** Queues a run of the workflow. */
export function queueCommand(
  executionUrl: string,
  workflowId: string,
  variables: Record<string, unknown>,
  { key = placeholder, browserContext }: Queueing = {},
): string {
  const query = browserContext ? `?${new URLSearchParams({ ...browserContext })}` : ''
  return [
    `curl -X PUT ${quoted(`${executionUrl}/v1/execution/queue-remote/${workflowId}${query}`)} \\`,
    `  ${bearer(key)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(JSON.stringify({ variableData: variables }, null, 2))}`,
  ].join('\n')
}

/** Puts what Playwright has written into a file into the browser context. */
export function uploadCommand(browserContextUrl: string, contextId: string, file: string): string {
  return [
    `curl -X PUT ${quoted(`${browserContextUrl}/alpha/browser-contexts/${contextId}/storage-state`)} \\`,
    `  -H 'x-service-api-key: ${placeholder}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  --data-binary @${quoted(file)}`,
  ].join('\n')
}

/** Reads a run. */
export function readCommand(executionUrl: string, runId: string): string {
  return `curl ${quoted(`${executionUrl}/v1/execution/runs/${runId}`)} ${apiKey}`
}

/** Reads everything that has happened to a run, and what happens from then on. */
export function eventsCommand(executionUrl: string, runId: string): string {
  return `curl -N ${quoted(`${executionUrl}/v1/execution/runs/${runId}/events`)} ${apiKey}`
}

/** As one word of a POSIX shell, whatever it is made of. */
function quoted(text: string): string {
  if (/^[\w./:-]+$/.test(text)) return text
  return `'${text.replaceAll("'", `'\\''`)}'`
}
