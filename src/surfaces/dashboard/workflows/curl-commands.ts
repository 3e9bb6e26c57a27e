/** curl commands that do over the APIs what a page does. */
import type { PersistContext } from '../../../domain/runs/run.ts'

const keyPlaceholder = '<API_KEY>'

export interface ContextQuery {
  browserContextId: string
  persistContext: PersistContext
}

export function queueCommand(
  executionUrl: string,
  workflowId: string,
  variables: Record<string, unknown>,
  { key = keyPlaceholder, browserContext }: { key?: string; browserContext?: ContextQuery | undefined } = {},
): string {
  const query = browserContext ? `?${new URLSearchParams({ ...browserContext })}` : ''
  return [
    `curl -X PUT ${shellQuote(`${executionUrl}/v1/execution/queue-remote/${workflowId}${query}`)} \\`,
    `  ${authorization(key)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${shellQuote(JSON.stringify({ variableData: variables }, null, 2))}`,
  ].join('\n')
}

export function uploadCommand(browserContextUrl: string, contextId: string, file: string): string {
  return [
    `curl -X PUT ${shellQuote(`${browserContextUrl}/alpha/browser-contexts/${contextId}/storage-state`)} \\`,
    `  -H 'x-service-api-key: ${keyPlaceholder}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  --data-binary @${shellQuote(file)}`,
  ].join('\n')
}

export function readCommand(executionUrl: string, runId: string): string {
  return `curl ${shellQuote(`${executionUrl}/v1/execution/runs/${runId}`)} ${authorization(keyPlaceholder)}`
}

export function eventsCommand(executionUrl: string, runId: string): string {
  return `curl -N ${shellQuote(`${executionUrl}/v1/execution/runs/${runId}/events`)} ${authorization(keyPlaceholder)}`
}

function authorization(key: string): string {
  return `-H 'Authorization: Bearer ${key}'`
}

/** Quotes any text as one word of a POSIX shell. */
function shellQuote(text: string): string {
  if (/^[\w./:-]+$/.test(text)) return text
  return `'${text.replaceAll("'", `'\\''`)}'`
}
