/** Clients that eight generators write from a service's own document call each of its workflows, with types. */
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeDirectory, startTestService, type TestService, temporaryDirectory } from '../support/service.ts'
import { bundle, compile, generatorProject, runIn } from './generated-clients.ts'
import { sourceOf, variedWorkflows } from './varied-workflows.ts'

let project: string
let service: TestService
let key: string
const workflows = temporaryDirectory()
/** By the workflow's id. */
const operationIds = new Map<string, string>()

beforeAll(async () => {
  for (const workflow of variedWorkflows) await writeFile(join(workflows, `${workflow.id}.ts`), sourceOf(workflow))
  const starting = startTestService({ settings: { WORKFLOWS_DIR: workflows } })
  ;[service, project] = await Promise.all([starting, generatorProject()])
  key = (await service.createAccount()).key
  await mkdir(join(project, 'live'))
  const headers = { Authorization: `Bearer ${key}` }
  const response = await fetch(`${service.executionUrl}/v1/execution/openapi.json`, { headers })
  const text = await response.text()
  await writeFile(join(project, document), text)
  for (const { put } of Object.values<{ put?: Record<string, string> }>(JSON.parse(text).paths))
    if (put?.['x-workflow-id']) operationIds.set(put['x-workflow-id'], String(put.operationId))
}, 300_000)
afterAll(async () => {
  await service?.stop()
  if (project) removeDirectory(project)
  removeDirectory(workflows)
})

const document = './live/document.json'

interface Generator {
  name: string
  generate(): Promise<unknown>
  /** The file that has the name of each operation. */
  file: string
  /** The file of those that answer, if it is another one. */
  answersFile?: string
  imports: string
  /** Statements that use `baseUrl` and `apiKey`. */
  setUp: string
  /** An expression that queues a run and waits for its end; the run. @param body JSON. */
  call(name: string, body: string, id: string): string
  /** An expression that answers the wait `approval`. @param body JSON. */
  answer(name: string, body: string): string
}

const mediaTypes = "['application/json', 'text/event-stream'].includes(mediaType)"
const wait = "'wait=30'"
const withKey = '{ Authorization: `Bearer ${apiKey}` }'

const generators: Generator[] = [
  {
    name: '@hey-api/openapi-ts',
    generate: () =>
      runIn(project, 'openapi-ts', '-i', join(project, document), '-o', 'live/hey-api', '-c', '@hey-api/client-fetch'),
    file: 'live/hey-api/sdk.gen.ts',
    imports: `import * as api from './live/hey-api/index.ts'
import { client } from './live/hey-api/client.gen.ts'`,
    setUp: 'client.setConfig({ baseUrl, auth: apiKey })',
    call: (name, body) =>
      `(await api.${name}({ body: ${body}, headers: { Prefer: ${wait} }, throwOnError: true })).data`,
    answer: (name, body) => `await api.${name}({ path: { runId }, body: ${body} })`,
  },
  {
    name: 'openapi-typescript-codegen',
    generate: () => runIn(project, 'openapi', '-i', document, '-o', 'live/codegen'),
    file: 'live/codegen/services/WorkflowsService.ts',
    answersFile: 'live/codegen/services/WaitsService.ts',
    imports: "import { OpenAPI, WaitsService, WorkflowsService } from './live/codegen/index.ts'",
    setUp: 'Object.assign(OpenAPI, { BASE: baseUrl, TOKEN: apiKey })',
    call: (name, body) => `await WorkflowsService.${name}(${body}, undefined, ${wait})`,
    answer: (name, body) => `await WaitsService.${name}(runId, ${body})`,
  },
  {
    name: 'openapi-zod-client',
    generate: () =>
      runIn(project, 'openapi-zod-client', document, '-o', 'live/zod.ts', '--media-type-expr', mediaTypes),
    file: 'live/zod.ts',
    imports: "import { createApiClient } from './live/zod.ts'",
    setUp: `const client = createApiClient(baseUrl, { axiosConfig: { headers: ${withKey} } })`,
    call: (name, body) => `await client.${name}(${body}, { headers: { Prefer: ${wait} } })`,
    answer: (name, body) => `await client.${name}(${body}, { params: { runId } })`,
  },
  {
    name: 'oazapfts',
    generate: () => runIn(project, 'oazapfts', document, 'live/oazapfts.ts'),
    file: 'live/oazapfts.ts',
    imports: `import { ok } from '@oazapfts/runtime'
import * as api from './live/oazapfts.ts'`,
    setUp: `Object.assign(api.defaults, { baseUrl, headers: ${withKey} })`,
    call: (name, body) => `await ok(api.${name}(${body}, { prefer: ${wait} }))`,
    answer: (name, body) => `await ok(api.${name}(runId, ${body}))`,
  },
  {
    name: 'openapi-client-axios',
    generate: async () => writeFile(join(project, 'live/axios.d.ts'), await runIn(project, 'typegen', document)),
    file: 'live/axios.d.ts',
    imports: `import { OpenAPIClientAxios } from 'openapi-client-axios'
import type { Client } from './live/axios.d.ts'
import definition from '${document}'`,
    setUp: `const options = { definition: definition as never, axiosConfigDefaults: { headers: ${withKey} } }
  const client = await new OpenAPIClientAxios(options).getClient<Client>()`,
    call: (name, body) => `(await client.${name}({ Prefer: ${wait} }, ${body})).data`,
    answer: (name, body) => `await client.${name}({ runId }, ${body})`,
  },
  {
    name: 'swagger-typescript-api',
    generate: () => runIn(project, 'swagger-typescript-api', 'generate', '-p', document, '-o', 'live', '-n', 'api.ts'),
    file: 'live/api.ts',
    imports: "import { Api } from './live/api.ts'",
    setUp: `const { v1 } = new Api({ baseUrl, baseApiParams: { headers: ${withKey} } })`,
    call: (name, body) => `(await v1.${name}(${body}, {}, { headers: { Prefer: ${wait} } })).data`,
    answer: (name, body) => `await v1.${name}(runId, ${body})`,
  },
  {
    name: 'orval',
    generate: async () => {
      const baseUrl = { getBaseUrlFromSpecification: true }
      const config = { live: { input: document, output: { target: 'live/orval.ts', client: 'fetch', baseUrl } } }
      await writeFile(join(project, 'orval.config.mjs'), `export default ${JSON.stringify(config)}`)
      await runIn(project, 'orval', '--config', 'orval.config.mjs')
    },
    file: 'live/orval.ts',
    imports: "import * as api from './live/orval.ts'",
    setUp: `const headers = { ...${withKey}, Prefer: ${wait} }
  function finished<R extends { status: number }>(response: R): Extract<R, { status: 200 }> {
    if (response.status !== 200) throw new Error(\`\${response.status}\`)
    return response as Extract<R, { status: 200 }>
  }`,
    call: (name, body) => `finished(await api.${name}(${body}, undefined, { headers })).data`,
    answer: (name, body) => `await api.${name}(runId, ${body}, { headers })`,
  },
  {
    name: 'openapi-typescript',
    generate: () =>
      runIn(project, 'openapi-typescript', document, '-o', 'live/types.ts', '--default-non-nullable=false'),
    file: 'live/types.ts',
    imports: `import createClient from 'openapi-fetch'
import type { paths } from './live/types.ts'`,
    setUp: `const client = createClient<paths>({ baseUrl, headers: ${withKey} })
  // The types of openapi-fetch lack members that are only null.
  function succeeded<R extends { status: string }>(run: R | undefined): Extract<R, { status: 'succeeded' }> {
    if (run?.status !== 'succeeded') throw new Error('The run has not succeeded.')
    return run as Extract<R, { status: 'succeeded' }>
  }`,
    call: (_name, body, id) =>
      `succeeded((await client.PUT('/v1/execution/queue-remote/${id}',
      { params: { header: { Prefer: ${wait} } }, body: ${body} })).data)`,
    answer: (_name, body) =>
      `await client.PUT('/v1/execution/runs/{runId}/waits/approval', { params: { path: { runId } }, body: ${body} })`,
  },
]

test.for(generators)(
  'a client generated by $name calls each workflow, and types its output and the answers to its waits',
  { timeout: 300_000 },
  async (generator) => {
    await generator.generate()
    const name = `varied-${generators.indexOf(generator)}`
    await writeFile(join(project, `${name}.ts`), callerOf(generator))
    expect(await compile(project, name, [`${name}.ts`])).toBe('')
    const { call } = await import(await bundle(project, name))
    const expected = Object.fromEntries(variedWorkflows.map(({ id, result }) => [id, result]))
    expect(await call(service.executionUrl, key)).toEqual(expected)
  },
)

/** A module that calls each workflow. An output of type `any` would make `@ts-expect-error` an error. */
function callerOf({ file, answersFile, imports, setUp, call, answer }: Generator): string {
  const source = readFileSync(join(project, file), 'utf8')
  const sourceOfAnswers = answersFile && readFileSync(join(project, answersFile), 'utf8')
  const calls = variedWorkflows.map(({ id, call: variableData, type }) => {
    const run = call(nameIn(source, operationIds.get(id) ?? ''), JSON.stringify({ variableData }), id)
    return `  {
    const run = ${run}
    const output: ${type} | null = run.output
    // @ts-expect-error
    const wrong: symbol = run.output
    outputs['${id}'] = output
  }`
  })
  const complete = nameIn(sourceOfAnswers ?? source, 'completeWaitApproval')
  const answers = [true, { approved: true }].map((value) => `  ${answer(complete, JSON.stringify({ value }))}`)
  return `${imports}

/** Of two workflows, with different schemas. Compiled only. */
export async function answer(runId: string, baseUrl: string, apiKey: string) {
  ${setUp}
${answers.join('\n')}
  // @ts-expect-error
${answer(complete, JSON.stringify({ value: 'yes' }))}
}

export async function call(baseUrl: string, apiKey: string) {
  const outputs: Record<string, unknown> = {}
  ${setUp}
${calls.join('\n')}
  return outputs
}
`
}

/** The generators write names with capitals of their own, and without `_`. */
function nameIn(source: string, operationId: string): string {
  const plain = (name: string) => name.replaceAll('_', '').toLowerCase()
  const found = source
    .match(/\w+/g)
    ?.find((name) => plain(name) === plain(operationId) && /^(queue|complete)/.test(name))
  if (!found) throw new Error(`The generated client lacks ${operationId}.`)
  return found
}
