/** curl commands that do over the APIs what a page does. */
import { type GivenOptions, toParameters } from '../../../domain/queue/run-options.ts'

const keyPlaceholder = '<API_KEY>'

export function queueCommand(
  executionUrl: string,
  workflowId: string,
  variables: Record<string, unknown>,
  { key = keyPlaceholder, options = {} }: { key?: string; options?: GivenOptions } = {},
): string {
  const query = new URLSearchParams(toParameters(options) as Record<string, string>)
  return [
    `curl -X PUT ${shellQuote(`${executionUrl}/v1/execution/queue-remote/${workflowId}${query.size > 0 ? `?${query}` : ''}`)} \\`,
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
