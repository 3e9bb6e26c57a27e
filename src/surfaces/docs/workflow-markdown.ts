/** The docs of one workflow as Markdown, from its definition: variables, samples, output, limits and errors. */

import {
  isObject,
  type Members,
  memberSchemas,
  resolveSchema,
  toMembers,
} from '../../domain/workflows/example-values.ts'
import { describeDeclared, type JsonSchema, type Workflow } from '../../domain/workflows/workflow.ts'
import type { Sample } from './contracts.ts'
import { cell, code, fence, paragraphs, plain, sentence } from './workflow-texts.ts'

interface WorkflowLinks {
  /** Where callers reach the Execution API. */
  executionUrl: string
  /** Prefix of the links to the guides: they are one directory above the pages of an account. */
  root: string
}

export function workflowMarkdown(workflow: Workflow, { executionUrl, root }: WorkflowLinks): string {
  const { id, version, title, description, deprecated, variables, output, examples } = workflow
  const [example] = examples?.variables ?? []
  const [exampleOutput] = examples?.outputs ?? []
  return `# ${plain(title)}

${paragraphs(description ?? 'This workflow has no description.')}

${deprecated ? '> **Deprecated.** Runs are still executed. Use another workflow for new calls.\n\n' : ''}\`PUT /v1/execution/queue-remote/${id}\` queues a run of version ${plain(version)}. The API key needs the scope \`runs:write\`, if its account
has scopes.

## Variables

${schemaTable(variables, 'The workflow has no variables: `variableData` is `{}`.')}

Other members of \`variableData\` are ${variables.additionalProperties === false ? 'refused' : 'accepted, unless the schema refuses them'}.

## Queue a run

${example ? samples(executionUrl, id, example.value, root) : 'No example satisfies the schema of the variables. Add `examples` to the schema to get samples here.\n'}
${workflow.usesBrowser ? browserSection(root) : ''}${workflow.waits ? answersSection(workflow, root) : ''}## Output

${schemaTable(output, 'The output can be any JSON value.')}

${exampleOutput === undefined ? '' : `${fence('json', JSON.stringify(exampleOutput, null, 2))}\n\n`}A run has its output when its \`status\` is \`succeeded\`.

## Limits

${limits(workflow)}
${[describeDeclared(workflow)].flatMap((sentence) => (sentence ? `\n${sentence}\n` : [])).join('')}
## Errors

Variables that do not fit the schema are refused with 400; \`errors\` names each wrong member. See [Errors](${root}errors.md)
for all others, and [Run life cycle](${root}run-life-cycle.md) for how a run may end.
`
}

function samples(executionUrl: string, id: string, variables: unknown, root: string): string {
  const languages = { curl: 'sh', TypeScript: 'ts', Python: 'py' }
  const shown = workflowSamples(executionUrl, id, variables).map(
    ({ lang, source }) => `### ${lang}\n\n${fence(languages[lang], source)}\n`,
  )
  const types = `\`workflows.ts\` has the types of all workflows. [Generate it](${root}client.md#the-types-of-your-workflows) once:

${fence('sh', `API_KEY=… npx execution-service-client types --url ${executionUrl} --out workflows.ts`)}
`
  return [...shown, types].join('\n')
}

function browserSection(root: string): string {
  return `## Browser

The run has its own browser. The query parameter \`browserContextId\` starts it with the cookies and storage of a
[browser context](${root}browser-contexts.md).

`
}

function answersSection({ waits = {}, examples }: Workflow, root: string): string {
  const answers = Object.entries(waits).map(([name, { schema, title, description }]) => {
    const texts = [title && `Title: ${plain(title)}`, description && paragraphs(description)].filter(Boolean)
    const example = Object.hasOwn(examples?.answers ?? {}, name) ? examples?.answers?.[name] : undefined
    return `### ${code(name)}

${[...texts, schemaTable(schema, 'The answer can be any JSON value.')].join('\n\n')}
${example === undefined ? '' : `\n${fence('json', JSON.stringify({ value: example }, null, 2))}\n`}`
  })
  return `## Answers

A run may wait for an answer. \`PUT /v1/execution/runs/{runId}/waits/{name}\` gives it, with the answer as \`value\`; the
first one counts, also before the run waits for it. The API key needs the scope \`waits:write\`, if its account has scopes.
[How runs wait](${root}runs-that-wait.md).

${answers.join('\n')}
`
}

const scopes = { workflow: '', account: ' of an account', key: ' of each `concurrencyKey`' }

function limits(workflow: Workflow): string {
  const { timeLimitSeconds, retry, concurrency, throttle } = workflow
  const attempts =
    retry.maxAttempts === 1
      ? 'A failed attempt is not repeated.'
      : `A run has up to ${retry.maxAttempts} attempts; the first retry waits ${retry.backoffSeconds} s.`
  const atOnce = concurrency && `At most ${count(concurrency.limit, 'run')}${scopes[concurrency.per]} at the same time.`
  const rate =
    throttle && `At most ${count(throttle.limit, 'run')}${scopes[throttle.per]} start in ${throttle.periodSeconds} s.`
  return [`An attempt may take ${timeLimitSeconds} s.`, attempts, atOnce, rate].filter(Boolean).join(' ')
}

/** Nested members further down are described by their parents only. */
const depthMax = 3

interface Row {
  name: string
  type: string
  description: string
}

function schemaTable(root: JsonSchema, whenEmpty: string): string {
  const rows = [...describeMembers(root, root, '', 0)]
  if (rows.length === 0)
    return isObject(root) && root.type !== undefined && root.type !== 'object' ? single(root) : whenEmpty
  const lines = rows.map(({ name, type, description }) => `| ${cell(name)} | ${cell(type)} | ${cell(description)} |`)
  return ['| name | type | description |', '| --- | --- | --- |', ...lines].join('\n')
}

function single(schema: Members): string {
  return `${typeOf(schema)}. ${describe(schema)}`.trim()
}

function* describeMembers(unresolved: unknown, root: JsonSchema, prefix: string, depth: number): Generator<Row> {
  const schema = toMembers(resolveSchema(unresolved, root))
  if (depth > depthMax) return
  for (const { name, schema: unresolvedMember, required } of memberSchemas(schema)) {
    const member = toMembers(resolveSchema(unresolvedMember, root))
    const path = `${prefix}${name}`
    const description = [required ? 'Required.' : '', describe(member)].filter(Boolean).join(' ')
    yield { name: code(path), type: typeOf(member), description }
    yield* describeMembers(member, root, `${path}.`, depth + 1)
  }
  if (isObject(schema.items)) yield* describeMembers(schema.items, root, `${prefix.replace(/\.$/, '')}[].`, depth + 1)
}

function typeOf(schema: Members): string {
  if ('const' in schema) return 'constant'
  if (Array.isArray(schema.enum)) return 'one of these values'
  const types = [schema.type ?? 'any'].flat().map(String)
  const items = isObject(schema.items) ? toMembers(schema.items).type : undefined
  const names = types.map((type) => (type === 'array' && typeof items === 'string' ? `array of ${items}` : type))
  return plain(names.join(' or '))
}

/** Sentences for the keywords of a schema that callers need. */
const keywords: Record<string, (value: unknown) => string> = {
  const: (value) => `Always ${json(value)}.`,
  enum: (values) => (Array.isArray(values) ? `One of ${values.map((each) => json(each)).join(', ')}.` : ''),
  default: (value) => `Default ${json(value)}.`,
  format: (value) => `Format ${code(String(value))}.`,
  pattern: (value) => `Pattern ${code(String(value))}.`,
  minimum: (value) => `At least ${plain(String(value))}.`,
  exclusiveMinimum: (value) => `More than ${plain(String(value))}.`,
  maximum: (value) => `At most ${plain(String(value))}.`,
  exclusiveMaximum: (value) => `Less than ${plain(String(value))}.`,
  multipleOf: (value) => `A multiple of ${plain(String(value))}.`,
  minLength: (value) => `At least ${count(value, 'character')}.`,
  maxLength: (value) => `At most ${count(value, 'character')}.`,
  minItems: (value) => `At least ${count(value, 'item')}.`,
  maxItems: (value) => `At most ${count(value, 'item')}.`,
  uniqueItems: (value) => (value === true ? 'Each item at most once.' : ''),
  writeOnly: (value) => (value === true ? 'Secret: stored encrypted, and masked in every response.' : ''),
  deprecated: (value) => (value === true ? 'Deprecated.' : ''),
}

function count(value: unknown, noun: string): string {
  return `${plain(String(value))} ${noun}${value === 1 ? '' : 's'}`
}

function describe(schema: Members): string {
  const own = typeof schema.description === 'string' ? schema.description : ''
  const others = Object.entries(keywords).flatMap(([name, toText]) => (name in schema ? [toText(schema[name])] : []))
  return [sentence(own), ...others].filter(Boolean).join(' ')
}

function json(value: unknown): string {
  return code(JSON.stringify(value))
}

// Code samples that queue a run of one workflow with its example variables.

/** @param variables of the run, as a JSON object. */
function workflowSamples(executionUrl: string, workflowId: string, variables: unknown): Sample[] {
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
