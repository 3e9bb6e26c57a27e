/**
 * The types of workflows: the compiler accepts a call if and only if the service does, in everything that a type can
 * express. What it cannot express is listed in the guide.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DescribedTypes, writeTypeFile } from '../../src/client/workflow-type-file.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { variableComponents } from '../../src/openapi/schema-components.ts'
import { send } from '../operations/requests.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { workflow } from '../support/snapshots.ts'
import { unusual } from './unusual-schemas.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const command = join(root, 'src/client/types-command.ts')
const workflowsDirectory = join(root, 'examples/workflows')
/** Inside the repository, so that the file finds the client and the compiler its types. */
const directory = join(root, 'node_modules/.cache/typed-workflows')

let service: TestService
let account: TestAccount

beforeAll(async () => {
  mkdirSync(directory, { recursive: true })
  service = await startTestService({ worker: false, settings: { WORKFLOWS_DIR: workflowsDirectory } })
  account = await service.createAccount()
  await writeTypes(['--url', service.executionUrl], 'workflows.ts')
})

afterAll(async () => {
  await service.stop()
  rmSync(directory, { recursive: true })
})

function writeTypes(source: string[], file: string) {
  const env = { PATH: process.env.PATH, API_KEY: account.key }
  return run(process.execPath, [command, 'types', ...source, '--out', join(directory, file)], { env })
}

/** Compiles the body of a function with a typed client, and returns the numbers of the lines with errors. */
function compile(name: string, lines: readonly string[]): Set<number> {
  const head = `import type { ExecutionClient } from '../../../src/client/index.ts'\nimport type { Workflows } from './workflows.ts'\nexport async function calls(client: ExecutionClient<Workflows>) {`
  const path = join(directory, name)
  writeFileSync(path, [head, ...lines, '}'].join('\n'))
  const program = ts.createProgram([path], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  })
  const diagnostics = ts.getPreEmitDiagnostics(program)
  const before = head.split('\n').length
  return new Set(
    diagnostics.map(({ file, start = 0, messageText }) => {
      // An error elsewhere would make the verdicts meaningless.
      expect(file?.fileName, ts.flattenDiagnosticMessageText(messageText, '\n')).toBe(path)
      return (file?.getLineAndCharacterOfPosition(start).line ?? 0) - before
    }),
  )
}

type Json = Record<string, unknown>
interface Schema {
  type?: string | string[]
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean
  minimum?: number
  maximum?: number
  minLength?: number
  pattern?: string
  format?: string
}

interface Call {
  workflowId: string
  variables: Json
  /** What no type expresses in this call; the guide has a row for each. */
  beyondTypes?: string
}

/** Values of each JSON type. */
const values: unknown[] = ['text', 7, true, null, [], {}]

/** Calls that differ from a valid one in one place. */
function mutations(workflowId: string, schema: Schema, valid: Json): Call[] {
  const calls: Call[] = [
    { workflowId, variables: valid },
    { workflowId: `${workflowId}x`, variables: valid },
    { workflowId: workflowId.toUpperCase(), variables: valid },
    { workflowId, variables: { ...valid, unknownMember: 1 } },
    { workflowId, variables: {} },
  ]
  const change = (name: string, value: unknown, beyondTypes?: string) =>
    calls.push({ workflowId, variables: { ...valid, [name]: value }, ...(beyondTypes && { beyondTypes }) })
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const { [name]: _, ...without } = valid
    calls.push(
      { workflowId, variables: without },
      { workflowId, variables: { ...without, [`${name}s`]: valid[name] ?? 1 } },
    )
    const isOfType = (value: unknown) => {
      const types = [member.type].flat()
      return value === null || Array.isArray(value)
        ? types.includes(value === null ? 'null' : 'array')
        : types.includes(typeof value)
    }
    // A value of the right type may break another rule, which the calls below try one by one.
    for (const value of values) if (!isOfType(value) && !(member.type === 'integer' && value === 7)) change(name, value)
    // Further values that are valid.
    if (member.type === 'boolean') change(name, false)
    if (member.type === 'integer') {
      for (const value of [member.minimum ?? 1, (member.minimum ?? 0) + 1, member.maximum ?? 9]) change(name, value)
    }
    if (member.type === 'string' && !member.enum) {
      for (const path of ['a', 'b/c?d=e'])
        change(name, member.format ? `http://127.0.0.1/${path}` : `${path}-long-enough`)
    }
    for (const value of member.enum ?? []) change(name, value)
    if (member.enum) change(name, 'other')
    if (member.type === 'integer') change(name, (member.minimum ?? 0) + 0.5, '`integer`')
    if (member.minimum !== undefined) change(name, member.minimum - 1, '`minimum`')
    if (member.maximum !== undefined) change(name, member.maximum + 1, '`maximum`')
    if (member.minLength !== undefined) change(name, 'a'.repeat(member.minLength - 1), '`minLength`')
    if (member.pattern !== undefined) change(name, 'ftp://example.com/', '`pattern`')
    if (member.format !== undefined) change(name, 'no uri', '`format`')
  }
  return calls
}

/** Members of two calls together, at random, until there are enough calls. */
function combine(calls: readonly Call[], count: number): Call[] {
  const random = seededRandom(18)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const typed = calls.filter(({ beyondTypes }) => beyondTypes === undefined)
  const combined = [...calls]
  while (combined.length < count) {
    const [one, other] = [pick(typed), pick(typed)]
    if (one.workflowId !== other.workflowId) continue
    combined.push({ workflowId: one.workflowId, variables: { ...one.variables, ...other.variables } })
  }
  return combined
}

async function exampleCalls(): Promise<Call[]> {
  const { body } = await send(service, 'getWorkflowsDocument', account.key).expect(200)
  const calls: Call[] = []
  for (const [path, { put }] of Object.entries<{ put: Json & { requestBody: { content: Record<string, Json> } } }>(
    body.paths,
  )) {
    if (!put?.['x-workflow-id']) continue
    const [example] = Object.values(
      put.requestBody.content['application/json']?.examples as Record<string, { value: { variableData: Json } }>,
    )
    expect(example, path).toBeDefined()
    const { body: workflow } = await send(service, 'getWorkflow', account.key, {
      path: { workflowId: String(put['x-workflow-id']) },
    })
    calls.push(...mutations(workflow.id, workflow.variablesSchema, example?.value.variableData ?? {}))
  }
  return calls
}

test('of 500 mutated calls, the compiler accepts exactly those that the service accepts', async () => {
  const calls = combine(await exampleCalls(), 500)
  const lines = calls.map(
    ({ workflowId, variables }) =>
      `  await client.runs.queueAndWait(${JSON.stringify(workflowId)}, ${JSON.stringify(variables)})`,
  )
  const refusedLines = compile('calls.ts', lines)
  const differences: string[] = []
  const beyondTypes = new Set<string>()
  let [accepted, refused] = [0, 0]
  for (const [index, { workflowId, variables, beyondTypes: rule }] of calls.entries()) {
    const query = 'delaySeconds=3600'
    const { status } = await send(service, 'queueRemoteRun', account.key, {
      path: { workflowId },
      query,
      body: { variableData: variables },
    })
    expect([202, 400, 404]).toContain(status)
    const [byService, byCompiler] = [status === 202, !refusedLines.has(index)]
    if (byService) accepted++
    else refused++
    if (byService === byCompiler) continue
    // The compiler may accept what only the service can judge, and nothing else.
    if (rule && byCompiler) beyondTypes.add(rule)
    else differences.push(`${byService ? 'only the service' : 'only the compiler'} accepts ${lines[index]}`)
  }
  expect(differences).toEqual([])
  expect(calls.length).toBeGreaterThanOrEqual(500)
  // Otherwise the test compares one verdict only.
  expect(Math.min(accepted, refused)).toBeGreaterThan(50)
  const guide = readFileSync(join(root, 'docs/guides/client.md'), 'utf8')
  expect(beyondTypes.size).toBeGreaterThan(3)
  expect([...beyondTypes].filter((rule) => !guide.includes(rule))).toEqual([])
})

test('the output has the type of the workflow when the run has succeeded, and is null otherwise', () => {
  const lines = [
    `  const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })`,
    '  if (error) return',
    `  if (run.status === 'succeeded') { const words: number = run.output.words; void words }`,
    `  if (run.status === 'succeeded') void run.output.pages`,
    '  void run.output.words',
    `  if (run.status === 'failed') { const nothing: null = run.output; void nothing }`,
    `  await client.queueRemoteRun({ params: { path: { workflowId: 'count-words' } }, body: { variableData: { path: 'a' } } })`,
    `  await client.queueRemoteRun({ params: { path: { workflowId: 'count-words' } }, body: { variableData: { pth: 'a' } } })`,
    `  await client.queueRemoteRun({ params: { path: { workflowId: 'cuont-words' } }, body: { variableData: { path: 'a' } } })`,
    `  await client.queueRemoteRun({ params: { path: { workflowId: 'count-words' }, query: { priority: 1 }, header: { Prefer: 'wait=1' } }, body: { variableData: { path: 'a' } } })`,
  ]
  expect([...compile('outputs.ts', lines)].sort()).toEqual([3, 4, 7, 8])
})

test('an answer has the type that the workflows which declare the wait give it', () => {
  const answer = (name: string, value: unknown) =>
    `  await client.completeWait({ params: { path: { runId: 'r', name: '${name}' } }, body: ${JSON.stringify({ value })} })`
  const lines = [
    answer('review', { release: true }),
    answer('review', { release: 'yes' }),
    answer('review', {}),
    answer('reviews', { release: true }),
    `  const { data } = await client.completeWait({ params: { path: { runId: 'r', name: 'review' } }, body: { value: { release: false, note: 'No' } } })`,
    '  if (data) { const status: string = data.status; void status }',
  ]
  expect([...compile('answers.ts', lines)].sort()).toEqual([1, 2, 3])
})

test('the file is the same for a service and for its directory of workflows', async () => {
  await writeTypes(['--workflows', workflowsDirectory], 'from-directory.ts')
  const [ofService, ofDirectory] = ['workflows.ts', 'from-directory.ts'].map((name) =>
    readFileSync(join(directory, name), 'utf8'),
  )
  expect(ofDirectory).toBe(ofService)
})

test.each([
  [['--url', 'http://127.0.0.1:1'], 'http://127.0.0.1:1/v1/execution/openapi.json got no response'],
  [['--workflows', '/nowhere'], '--workflows cannot be read'],
  [['--workflows', join(root, 'docs')], 'has no workflows'],
  [
    ['--workflows', join(root, 'src/client')],
    'is not a workflow: its default export must be the result of defineWorkflow.',
  ],
  [[], 'Give either --url or --workflows.'],
  [['--uri', 'x'], "Unknown option '--uri'"],
])('%j is refused with a sentence', async (source, message) => {
  const failed = await writeTypes(source, 'refused.ts').catch((error) => error)
  expect(failed.code).toBe(1)
  expect(failed.stderr).toContain(message)
  expect(failed.stderr).not.toContain('    at ')
})

test('unusual schemas have types that accept what the schemas accept, and refuse what types can refuse', async () => {
  const workflows = Object.values(unusual).map(({ schema }, index) =>
    workflow({ id: `w${index}`, variables: { type: 'object', ...schema } }),
  )
  const registry = new Workflows(workflows)
  const described: DescribedTypes = { workflows: new Map(), inputs: new Map(), outputs: new Map() }
  for (const each of workflows) {
    const components = [...variableComponents(each)]
    const [[name] = ['']] = components
    described.workflows.set(each.id, { variables: name, output: name, answers: new Map() })
    for (const [component, schema] of components) described.inputs.set(component, schema)
  }
  writeFileSync(join(directory, 'workflows.ts'), await writeTypeFile(described))
  const calls = Object.values(unusual).flatMap(({ valid, invalid }, index) =>
    [...valid, ...invalid].map((variables) => ({ id: `w${index}`, variables: variables as Json })),
  )
  const lines = calls.map(
    ({ id, variables }) => `  await client.runs.queueAndWait('${id}', ${JSON.stringify(variables)})`,
  )
  const refused = compile('unusual.ts', lines)
  const accepted = (_: unknown, index: number) => !refused.has(index)
  const isValid = ({ id, variables }: (typeof calls)[number]) =>
    'masked' in registry.checkVariables(id, structuredClone(variables))
  expect(lines.filter(accepted)).toEqual(lines.filter((_, index) => isValid(calls[index] as (typeof calls)[number])))
  expect(refused.size).toBe(Object.values(unusual).flatMap(({ invalid }) => invalid).length)
})
