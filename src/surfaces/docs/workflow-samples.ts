/** Code samples that queue a run of one workflow with its example variables. */
import type { Sample } from './contracts.ts'

/** @param variables of the run, as a JSON object. */
export function workflowSamples(executionUrl: string, workflowId: string, variables: unknown): Sample[] {
  const url = `${executionUrl}/v1/execution/queue-remote/${workflowId}`
  return [
    { lang: 'curl', source: curl(url, variables) },
    { lang: 'TypeScript', source: typeScript(executionUrl, workflowId, variables) },
    { lang: 'Python', source: python(url, variables) },
  ]
}

const waitSeconds = 30

function curl(url: string, variables: unknown): string {
  const body = JSON.stringify({ variableData: variables }, null, 2).replaceAll("'", "'\\''")
  return `# Waits up to ${waitSeconds} seconds for the run to finish.
curl --fail-with-body -X PUT ${url} \\
  -H "Authorization: Bearer $API_KEY" \\
  -H 'Content-Type: application/json' \\
  -H 'Prefer: wait=${waitSeconds}' \\
  -d '${body}'`
}

function typeScript(executionUrl: string, workflowId: string, variables: unknown): string {
  return `import { createExecutionClient } from 'execution-service-client'
import type { Workflows } from './workflows.ts'

const { API_KEY = '' } = process.env
const client = createExecutionClient<Workflows>({ baseUrl: '${executionUrl}', apiKey: API_KEY })

const { data: run, error } = await client.runs.queueAndWait('${workflowId}', ${JSON.stringify(variables, null, 2)})
if (error) {
  console.error(error.detail, error.errors)
  process.exit(1)
}
console.log(run.id, run.status, run.output)`
}

function python(url: string, variables: unknown): string {
  return `import json
import os
import sys
import urllib.error
import urllib.request
import uuid

request = urllib.request.Request(
    "${url}",
    method="PUT",
    data=json.dumps({"variableData": ${pythonLiteral(variables, 1)}}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['API_KEY']}",
        "Content-Type": "application/json",
        # Makes the request safe to repeat if the response is lost.
        "Idempotency-Key": str(uuid.uuid4()),
        # Waits up to ${waitSeconds} seconds for the run to finish.
        "Prefer": "wait=${waitSeconds}",
    },
)
try:
    with urllib.request.urlopen(request) as response:
        run = json.load(response)
except urllib.error.HTTPError as error:
    # JSON with "detail" and "errors", except for 401 and 403, which are plain text.
    sys.exit(f"{error.code}: {error.read().decode()}")
print(run["id"], run["status"], run["output"])`
}

/** A JSON value as a Python expression. Strings of JSON are strings of Python. */
function pythonLiteral(value: unknown, depth: number): string {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const inner = '    '.repeat(depth + 1)
  const items = Array.isArray(value)
    ? value.map((each) => pythonLiteral(each, depth + 1))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonLiteral(each, depth + 1)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  if (items.length === 0) return `${open}${close}`
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${'    '.repeat(depth)}${close}`
}
