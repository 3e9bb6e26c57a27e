#!/usr/bin/env node
/** `npx execution-service-client types` writes the types of workflows to a file, for `createExecutionClient<Workflows>`. */
import { readdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { describeCauses } from '../storage/error-causes.ts'
import type { DescribedTypes, TypeNames } from './workflow-type-file.ts'

const usage = `Usage:
  execution-service-client types --url URL --out FILE        the workflows of a service; API_KEY has the key
  execution-service-client types --workflows DIR --out FILE  those of a directory, without a service
`

/** What went wrong, for the person who called. */
class UsageError extends Error {}

type Schema = Record<string, unknown>

async function main(args: string[]): Promise<void> {
  const { url, workflows, out } = readOptions(args)
  const described = url === undefined ? await describeDirectory(workflows as string) : await describeService(url)
  const { writeTypeFile } = await import('./workflow-type-file.ts').catch((error: Error & { code?: string }) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UsageError('openapi-typescript is not installed: run `npm install --save-dev openapi-typescript`.')
  })
  await writeFile(out, await writeTypeFile(described))
  const count = described.workflows.size
  process.stdout.write(`wrote: ${out} (${count} workflow${count === 1 ? '' : 's'})\n`)
}

function readOptions(args: string[]) {
  const options = { url: { type: 'string' }, workflows: { type: 'string' }, out: { type: 'string' } } as const
  try {
    const { positionals, values } = parseArgs({ args, options, allowPositionals: true })
    const { url, workflows, out } = values
    if (positionals.length !== 1 || positionals[0] !== 'types') throw new UsageError('The only command is `types`.')
    if (out === undefined) throw new UsageError('--out is missing.')
    if ((url === undefined) === (workflows === undefined)) throw new UsageError('Give either --url or --workflows.')
    return { url, workflows, out }
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usage}`)
  }
}

interface ServedOperation {
  operationId: string
  'x-workflow-id'?: string
  'x-wait-name'?: string
  'x-workflow-answers'?: Record<string, string>
}

interface ServedDocument {
  paths: Record<string, { put?: ServedOperation }>
  components: { schemas: Record<string, Schema> }
}

async function describeService(url: string): Promise<DescribedTypes> {
  const { paths, components } = await fetchDocument(`${url.replace(/\/$/, '')}/v1/execution/openapi.json`)
  const workflows = new Map<string, TypeNames>()
  const [inputs, outputs] = [new Map<string, Schema>(), new Map<string, Schema>()]
  const operations = Object.values(paths).flatMap(({ put }) => put ?? [])
  for (const { operationId, 'x-workflow-id': id } of operations) {
    if (id === undefined) continue
    const component = operationId.replace(/^queue/, '')
    const answers = operations.flatMap(({ 'x-wait-name': name, 'x-workflow-answers': components = {} }) => {
      const answer = components[id]
      return name === undefined || answer === undefined ? [] : [[name, answer] as const]
    })
    const names = { variables: `${component}_Variables`, output: `${component}_Output`, answers: new Map(answers) }
    workflows.set(id, names)
    for (const input of [names.variables, ...names.answers.values()]) collect(components.schemas, input, inputs)
    collect(components.schemas, names.output, outputs)
  }
  return { workflows, inputs, outputs }
}

/** Adds a component and those that it refers to. */
function collect(schemas: Record<string, Schema>, name: string, found: Map<string, Schema>): void {
  const schema = schemas[name]
  if (!schema || found.has(name)) return
  found.set(name, schema)
  const references = JSON.stringify(schema).matchAll(/"\$ref":"#\/components\/schemas\/([A-Za-z0-9_]+)"/g)
  for (const [, reference = ''] of references) collect(schemas, reference, found)
}

async function fetchDocument(address: string): Promise<ServedDocument> {
  const { API_KEY: key = '' } = process.env
  if (key === '') throw new UsageError('API_KEY is not set: it must have an API key with the scope workflows:read.')
  let response: Response
  try {
    response = await fetch(address, { headers: { Authorization: `Bearer ${key}` }, redirect: 'error' })
  } catch (error) {
    throw new UsageError(`${address} got no response: ${describeCauses(error)}.`)
  }
  if (response.status === 401) throw new UsageError(`${address} does not accept the key in API_KEY.`)
  if (response.status === 403) throw new UsageError('The key in API_KEY lacks the scope workflows:read.')
  if (!response.ok) throw new UsageError(`${address} responded with ${response.status}.`)
  return (await response.json()) as ServedDocument
}

/** As the service selects them: each module directly in the directory. */
const modulePattern = /(?<!\.d|\.test)\.([cm]?[jt]s|[jt]sx)$/
/** What responses show in place of a secret. */
const mask = '********'

async function describeDirectory(directory: string): Promise<DescribedTypes> {
  const { answerComponents, outputComponents, variableComponents } = await import('../openapi/schema-components.ts')
  const files = (await listFiles(directory)).filter((file) => modulePattern.test(file)).sort()
  if (files.length === 0)
    throw new UsageError(`${directory} has no workflows: no file ends in .ts, .js, .mts, .mjs, .cts or .cjs.`)
  await resolveWorkflowPackage()
  const workflows = new Map<string, TypeNames>()
  const described = { workflows, inputs: new Map<string, Schema>(), outputs: new Map<string, Schema>() }
  for (const file of files) {
    const workflow = await load(join(directory, file))
    const [variables, outputs] = [variableComponents(workflow), outputComponents(workflow, mask)]
    const waits = Object.keys(workflow.waits).sort()
    const answers = waits.map((name) => [name, answerComponents(workflow, name)] as const)
    const names = {
      variables: firstName(variables),
      output: firstName(outputs),
      answers: new Map(answers.map(([name, components]) => [name, firstName(components)])),
    }
    if (workflows.has(workflow.id)) throw new UsageError(`Two workflows have the id "${workflow.id}": rename one.`)
    workflows.set(workflow.id, names)
    for (const components of [variables, ...answers.map(([, components]) => components)])
      for (const [name, schema] of components) described.inputs.set(name, schema)
    for (const [name, schema] of outputs) described.outputs.set(name, schema)
  }
  return described
}

function firstName(components: Map<string, Schema>): string {
  const [name = ''] = components.keys()
  return name
}

async function listFiles(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch (error) {
    throw new UsageError(`--workflows cannot be read: ${(error as Error).message}.`)
  }
}

interface LoadedWorkflow {
  id: string
  variables: Schema
  output: Schema
  waits: Record<string, { schema: Schema }>
}

async function load(path: string): Promise<LoadedWorkflow> {
  const module = await import(pathToFileURL(resolve(path)).href).catch((error: Error) => {
    throw new UsageError(`${path} failed to load: ${describeCauses(error)}`)
  })
  // The exports of a CommonJS module, with the default export as TypeScript writes it.
  const exported = module.default?.__esModule === true ? module.default.default : module.default
  const { id, variables, output, waits = {} } = (exported ?? {}) as Partial<LoadedWorkflow>
  if (typeof id === 'string' && variables && output) {
    // As plain JSON: libraries add symbols to schemas.
    return JSON.parse(JSON.stringify({ id, variables, output, waits }))
  }
  throw new UsageError(`${path} is not a workflow: its default export must be the result of defineWorkflow.`)
}

/** Where the service's package is not installed, its place is taken by the exports that loading a workflow needs. */
async function resolveWorkflowPackage(): Promise<void> {
  const { registerHooks } = await import('node:module')
  if (registerHooks === undefined) throw new UsageError('--workflows needs Node 22.18 or later, which runs TypeScript.')
  const source = ['CalledRunFailed', 'NonRetryableError', 'SignedOut'].reduce(
    (text, name) => `${text}; export class ${name} extends Error {}`,
    'export const defineWorkflow = (definition) => definition',
  )
  const url = `data:text/javascript,${source}`
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context)
      } catch (error) {
        if (specifier === 'execution-service/workflow') return { url, shortCircuit: true }
        throw error
      }
    },
  })
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message.trimEnd()}\n`)
  process.exitCode = 1
}
