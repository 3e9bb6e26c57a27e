/** Commands that do over the Execution API what a page does, for a shell. */

/** Stands where whoever uses the command puts a key. */
const placeholder = '<API_KEY>'

const bearer = (key: string) => `-H 'Authorization: Bearer ${key}'`
const apiKey = bearer(placeholder)

/** Queues a run of the workflow. */
export function queueCommand(
  executionUrl: string,
  workflowId: string,
  variables: Record<string, unknown>,
  key: string = placeholder,
): string {
  return [
    `curl -X PUT ${quoted(`${executionUrl}/v1/execution/queue-remote/${workflowId}`)} \\`,
    `  ${bearer(key)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(JSON.stringify({ variableData: variables }, null, 2))}`,
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
