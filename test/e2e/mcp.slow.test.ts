/** Workflows as tools of the Model Context Protocol, called with the official client. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type CallToolResult, CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { representations } from '../../src/domain/workflows/workflows-document.ts'
import { send } from '../operations/requests.ts'
import {
  removeDirectory,
  startTestService,
  type TestAccount,
  type TestService,
  temporaryDirectory,
} from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ settings: { RATE_LIMIT_PER_MINUTE: '60' } })
})
afterAll(() => service.stop())

const url = () => new URL('/mcp', service.executionUrl)

async function connect(key: string, address = url()) {
  const client = new Client({ name: 'test', version: '1.0.0' })
  const requestInit = { headers: { Authorization: `Bearer ${key}` } }
  const transport = new StreamableHTTPClientTransport(address, { requestInit })
  await client.connect(transport as Transport)
  onTestFinished(() => client.close())
  return client
}

type Options = NonNullable<Parameters<Client['callTool']>[2]>

async function call(client: Client, name: string, args: object, options: Options = {}): Promise<CallToolResult> {
  const params = { name, arguments: args as Record<string, unknown> }
  return (await client.callTool(params, undefined, options)) as CallToolResult
}

const runIdOf = ({ _meta }: CallToolResult) => String(_meta?.['execution-service/runId'])

async function readRun(account: TestAccount, runId: string) {
  return (await send(service, 'getRun', account.key, { path: { runId } }).expect(200)).body
}

/** Sends one message without the client. */
function post(headers: Record<string, string>, body: unknown = { jsonrpc: '2.0', id: 1, method: 'tools/list' }) {
  const usual = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(url(), { method: 'POST', headers: { ...usual, ...headers }, body: text })
}

const withKey = ({ key }: { key: string }) => ({ Authorization: `Bearer ${key}` })

test('each workflow is a tool with its schemas', async () => {
  const account = await service.createAccount()
  const { tools } = await (await connect(account.key)).listTools()
  const workflows = (await send(service, 'listWorkflows', account.key).expect(200)).body.data
  expect(tools.map(({ name }) => name)).toEqual(workflows.map(({ id }: { id: string }) => id))
  for (const [index, { title, description, inputSchema, outputSchema }] of tools.entries()) {
    const workflow = workflows[index]
    expect({ title, inputSchema }).toEqual({ title: workflow.title, inputSchema: workflow.variablesSchema })
    expect(description).toContain(workflow.description ?? workflow.title)
    expect(outputSchema?.type).toBe('object')
  }
})

test('a run that waits for an answer returns at once with how to answer', async () => {
  const account = await service.createAccount()
  const result = await call(await connect(account.key), 'approve', { amount: 7 })
  const runId = runIdOf(result)
  expect(result.isError).toBe(true)
  const [{ text = '' } = {}] = result.content as { text?: string }[]
  for (const part of [runId, `PUT /v1/execution/runs/${runId}/waits/approval`, 'Refund 7 €?', '"approved"'])
    expect(text).toContain(part)
  const answer = { path: { runId, name: 'approval' }, body: { value: { approved: true } } }
  await send(service, 'completeWait', account.key, answer).expect(200)
  await expect.poll(async () => (await readRun(account, runId)).status).toBe('succeeded')
})

/** Queues a run as a task. Another client takes it up: each request may reach another process. */
async function startTask(account: TestAccount, name: string, args: object) {
  const request = { method: 'tools/call' as const, params: { name, arguments: args as Record<string, unknown> } }
  const first = await connect(account.key)
  const { task } = await first.request(request, CreateTaskResultSchema, { task: {} })
  await first.close()
  return { task, tasks: (await connect(account.key)).experimental.tasks }
}

test('a call as a task returns at once, and another client takes its result', async () => {
  const account = await service.createAccount()
  const { task, tasks } = await startTask(account, 'greet', { name: 'Ada', token: 'a-long-secret' })
  expect(task).toMatchObject({ status: 'working', ttl: null, statusMessage: `Run ${task.taskId} is queued.` })
  const result = await tasks.getTaskResult(task.taskId, CallToolResultSchema)
  expect(result).toMatchObject({ structuredContent: { greeting: 'Hello, Ada!' } })
  expect(result._meta).toMatchObject({ 'io.modelcontextprotocol/related-task': { taskId: task.taskId } })
  expect(runIdOf(result)).toBe(task.taskId)
  expect(await tasks.getTask(task.taskId)).toMatchObject({ status: 'completed' })
  await expect(tasks.cancelTask(task.taskId)).rejects.toThrow('has ended as succeeded')
  const others = (await connect((await service.createAccount()).key)).experimental.tasks
  for (const id of [task.taskId, 'no-run', 'a'.repeat(5000)]) {
    await expect(others.getTask(id)).rejects.toThrow('There is no task')
    await expect(others.getTaskResult(id)).rejects.toThrow('There is no task')
  }
  await expect(tasks.listTasks()).rejects.toThrow('Method not found')
})

test("the client's stream of a task ends with the output, and a failed run says why in its result", async () => {
  const account = await service.createAccount()
  const client = await connect(account.key)
  await client.listTools()
  const types: string[] = []
  const args = { name: 'Ada', token: 'a-long-secret' }
  for await (const message of client.experimental.tasks.callToolStream({ name: 'greet', arguments: args })) {
    types.push(message.type)
    if (message.type === 'result') expect(message.result.structuredContent).toEqual({ greeting: 'Hello, Ada!' })
  }
  expect([types[0], types.at(-1)]).toEqual(['taskCreated', 'result'])
  const { task, tasks } = await startTask(account, 'count-words', { path: 'missing.md' })
  const failed = await tasks.getTaskResult(task.taskId, CallToolResultSchema)
  expect([failed.isError, JSON.stringify(failed.content)]).toEqual([
    true,
    expect.stringContaining('missing.md does not exist'),
  ])
  expect(await tasks.getTask(task.taskId)).toMatchObject({
    status: 'failed',
    statusMessage: expect.stringContaining('missing.md does not exist'),
  })
})

test('a task says what its run waits for, goes on with the answer, and can be cancelled', async () => {
  const account = await service.createAccount()
  const { task, tasks } = await startTask(account, 'approve', { amount: 7 })
  const question = expect.stringContaining(`PUT /v1/execution/runs/${task.taskId}/waits/approval`)
  await expect.poll(() => tasks.getTask(task.taskId)).toMatchObject({ status: 'working', statusMessage: question })
  const result = tasks.getTaskResult(task.taskId, CallToolResultSchema)
  const answer = { path: { runId: task.taskId, name: 'approval' }, body: { value: { approved: true } } }
  await send(service, 'completeWait', account.key, answer).expect(200)
  expect((await result).structuredContent).toEqual({ result: { ok: true, value: { approved: true } } })

  const other = await startTask(account, 'approve', { amount: 8 })
  expect(await other.tasks.cancelTask(other.task.taskId)).toMatchObject({ status: 'cancelled' })
  await expect.poll(async () => (await readRun(account, other.task.taskId)).status).toBe('cancelled')
  const cancelled = await other.tasks.getTaskResult(other.task.taskId, CallToolResultSchema)
  expect(JSON.stringify(cancelled.content)).toContain('has ended as cancelled')
})

test('the tools are made once for all accounts with the same deployment', async () => {
  const [first, second] = [await service.createAccount(), await service.createAccount()]
  const list = async (account: TestAccount, id: number | string) => {
    const response = await post(withKey(account), { jsonrpc: '2.0', id, method: 'tools/list' })
    expect(response.headers.get('content-type')).toMatch('application/json')
    const { result, ...others } = (await response.json()) as { result: object; id: unknown }
    expect(others).toEqual({ jsonrpc: '2.0', id })
    return result
  }
  const result = await list(first, 1)
  const { bytes } = representations
  expect(await list(second, 'a "quoted" é')).toEqual(result)
  expect(representations.bytes).toBe(bytes)
})

test('a list of tools for another version of the protocol, or that the client does not accept, is refused', async () => {
  const key = withKey(await service.createAccount())
  expect((await post({ ...key, 'MCP-Protocol-Version': '1999-01-01' })).status).toBe(400)
  expect((await post({ ...key, 'MCP-Protocol-Version': '2025-06-18' })).status).toBe(200)
  expect((await post({ ...key, Accept: 'text/event-stream' })).status).toBe(406)
})

test('a workflow with a member `constructor` leaves the list of tools readable for the official client', async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const properties = {
    constructor: { type: 'string' },
    name: { $ref: '#/properties/model' },
    model: { type: 'string' },
  }
  const schema = { type: 'object', required: ['constructor'], additionalProperties: false, properties }
  const source = JSON.stringify({ id: 'cars', version: '1.0.0', title: 'Cars', variables: schema, output: schema })
  const text = `import { defineWorkflow } from 'execution-service/workflow'
    export default defineWorkflow({ ...${source}, run: ({ variables }) => variables })`
  writeFileSync(join(directory, 'cars.ts'), text)
  const other = await startTestService({ settings: { WORKFLOWS_DIR: directory } })
  onTestFinished(() => other.stop())
  const client = await connect((await other.createAccount()).key, new URL('/mcp', other.executionUrl))
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['cars'])
  for (const listed of tools.flatMap((tool) => [tool.inputSchema, tool.outputSchema]))
    expect(Object.keys(listed?.properties ?? {})).toEqual(['name', 'model'])
  const result = await call(client, 'cars', { constructor: 'Ada' })
  expect(result.structuredContent).toEqual({ constructor: 'Ada' })
})

test('an id that clients refuse as a name has another name, which no other workflow takes from it', async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const long = `long-${'a'.repeat(65)}`
  const ids = ['billing.invoice-send', 'billing_invoice-send-a67b1809', long, 'x_1']
  const schema = { type: 'object' }
  for (const [index, id] of ids.entries()) {
    const source = JSON.stringify({
      id,
      version: '1.0.0',
      title: 'Title',
      variables: schema,
      output: { type: 'string' },
    })
    const text = `import { defineWorkflow } from 'execution-service/workflow'
      export default defineWorkflow({ ...${source}, run: () => '${id}' })`
    writeFileSync(join(directory, `${index}.ts`), text)
  }
  const other = await startTestService({ settings: { WORKFLOWS_DIR: directory } })
  onTestFinished(() => other.stop())
  const client = await connect((await other.createAccount()).key, new URL('/mcp', other.executionUrl))
  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  const isMapped = [true, false, true, false]
  expect(names.slice(0, 2)).toEqual(['billing_invoice-send-a67b1809e47fa1b1', ids[1]])
  for (const [index, { name, description = '' }] of tools.entries()) {
    expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(name !== ids[index]).toBe(isMapped[index])
    expect(description.includes(`\`${ids[index]}\``)).toBe(isMapped[index])
    expect((await call(client, name, {})).structuredContent).toEqual({ result: ids[index] })
  }
  expect(new Set(names).size).toBe(ids.length)
})

/** Schemas that the official client could not read, or with which it refused what the service accepts. */
const outputs: Record<string, { schema: object; value: unknown }> = {
  'closed-tuple': {
    schema: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false, minItems: 2 },
    value: ['a', 1],
  },
  'open-tuple': {
    schema: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    value: ['a', 1, 2],
  },
  'nested-tuple': {
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { pair: { prefixItems: [{ type: 'string' }, {}], items: false, maxItems: 5 } },
    },
    value: { pair: ['a', null] },
  },
  identified: { schema: { $id: 'https://example.com/item', type: 'string' }, value: 'a' },
  definition: {
    schema: { type: 'array', items: { $ref: '#/$defs/part' }, $defs: { part: { type: 'number' } } },
    value: [1],
  },
  recursive: {
    schema: { type: 'array', items: { $ref: '#' } },
    value: [[], [[]]],
  },
  'recursive-object': {
    schema: { type: 'object', properties: { child: { $ref: '#' } }, additionalProperties: false },
    value: { child: { child: {} } },
  },
  'boolean-members': {
    schema: { type: 'object', properties: { any: true, none: false } },
    value: { any: [1] },
  },
  'constructor-reference': {
    schema: {
      type: 'object',
      properties: { constructor: { type: 'string' }, other: { $ref: '#/properties/constructor' } },
    },
    value: { constructor: 'a', other: 'b' },
  },
}

test('the official client reads outputs of every kind of schema, and refuses none', { timeout: 60_000 }, async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  for (const [id, { schema, value }] of Object.entries(outputs)) {
    const source = JSON.stringify({ id, version: '1.0.0', title: id, output: schema })
    const variables = JSON.stringify({ type: 'object', properties: { anything: true } })
    const text = `import { defineWorkflow } from 'execution-service/workflow'
      export default defineWorkflow({ ...${source}, variables: ${variables}, run: () => (${JSON.stringify(value)}) } as never)`
    writeFileSync(join(directory, `${id}.ts`), text)
  }
  const other = await startTestService({ settings: { WORKFLOWS_DIR: directory } })
  onTestFinished(() => other.stop())
  const client = await connect((await other.createAccount()).key, new URL('/mcp', other.executionUrl))
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(Object.keys(outputs).sort())
  const ajv = new Ajv2020({ strict: false })
  for (const { name, outputSchema } of tools) {
    const { value } = outputs[name] as { value: unknown }
    const { structuredContent } = await call(client, name, {})
    expect([name, structuredContent]).toEqual([name, outputSchema?.properties?.result ? { result: value } : value])
    expect([name, ajv.validate(outputSchema as object, structuredContent)]).toEqual([name, true])
  }
  const closed = tools.find(({ name }) => name === 'closed-tuple')?.outputSchema as object
  expect(ajv.validate(closed, { result: ['a', 1, 2] })).toBe(false)
})

test('a response names the document, and closes the connection when the client asks for it', async () => {
  const account = await service.createAccount()
  for (const headers of [withKey(account), {}]) {
    const response = await post({ ...headers, Connection: 'close' })
    expect(response.headers.get('X-Document-Hash')).toMatch(/^[\w-]+$/)
    expect(response.headers.get('Connection')).toBe('close')
    await response.text()
  }
})

test('malformed parameters are invalid parameters', async () => {
  const account = await service.createAccount()
  for (const params of [undefined, {}, { name: 1 }, { name: 'greet', arguments: [] }]) {
    const response = await post(withKey(account), { jsonrpc: '2.0', id: 7, method: 'tools/call', params })
    const { id, error } = (await response.json()) as { id: number; error: { code: number; message: string } }
    expect([id, error.code]).toEqual([7, -32602])
    expect(error.message).toMatch(/^params/)
    expect(error.message.length).toBeLessThan(200)
  }
})

test('a call queues a run of the caller, and returns its output as structured content', async () => {
  const account = await service.createAccount()
  const client = await connect(account.key)
  // The client validates the structured content by the schemas of the tools that it has listed.
  await client.listTools()
  const result = await call(client, 'greet', { name: 'Ada' })
  expect(result.isError).toBeUndefined()
  const run = await readRun(account, runIdOf(result))
  expect(run).toMatchObject({ workflowId: 'greet', status: 'succeeded', variableData: { name: 'Ada' } })
  expect(result.structuredContent).toEqual(run.output)
  expect(result.content).toEqual([{ type: 'text', text: JSON.stringify(result.structuredContent) }])
  const words = await call(client, 'count-words', { path: 'README.md' })
  expect(words.isError, JSON.stringify(words)).toBeUndefined()
  expect(words.structuredContent).toEqual((await readRun(account, runIdOf(words))).output)
})

test('progress notifications follow a run that takes long', async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const client = await connect((await service.createAccount()).key)
  const seen: { progress: number; message?: string | undefined }[] = []
  const file = join(directory, 'go')
  const onprogress = (progress: (typeof seen)[number]) => {
    seen.push(progress)
    // The run goes on only after its progress was received.
    if (progress.message === 'Holding') writeFileSync(file, '')
  }
  const result = await call(client, 'hold', { file }, { onprogress, resetTimeoutOnProgress: true })
  expect(result.structuredContent).toEqual({ result: 'released' })
  expect(seen.map(({ message }) => message)).toEqual([
    `Run ${runIdOf(result)} is queued.`,
    `Run ${runIdOf(result)} is running.`,
    'Holding',
    'Released',
    `Run ${runIdOf(result)} is succeeded.`,
  ])
  const values = seen.map(({ progress }) => progress)
  expect(values).toEqual([...new Set(values)].sort((a, b) => a - b))
})

test("a call that outlives the client's time limit is taken up again by the run that its progress names", async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const file = join(directory, 'go')
  const client = await connect((await service.createAccount()).key)
  let runId = ''
  const onprogress = ({ message = '' }: { message?: string | undefined }) => {
    runId ||= message.match(/^Run (\S+) is queued/)?.[1] ?? ''
  }
  await expect(call(client, 'hold', { file }, { onprogress, timeout: 400 })).rejects.toThrow('Request timed out')
  const { tasks } = client.experimental
  expect(await tasks.getTask(runId)).toMatchObject({ taskId: runId, status: 'working' })
  writeFileSync(file, '')
  const result = await tasks.getTaskResult(runId, CallToolResultSchema)
  expect(result.structuredContent).toEqual({ result: 'released' })
})

test('a call whose arguments do not fit, or whose run fails, is a tool error that says why', async () => {
  const account = await service.createAccount()
  const client = await connect(account.key)
  const invalid = await call(client, 'greet', { name: 7, colour: 'red' })
  expect(invalid.isError).toBe(true)
  expect(invalid.content).toEqual([
    {
      type: 'text',
      text: expect.stringMatching(/^The arguments are invalid\. .*\/name must be string.* No run was queued\.$/),
    },
  ])
  const failed = await call(client, 'betray', { token: 'canary-7f3a', fails: true })
  expect(failed.isError).toBe(true)
  const { error } = await readRun(account, runIdOf(failed))
  const text = `Run ${runIdOf(failed)} has ended as failed: ${error.name}: ${error.message}`
  expect(failed.content).toEqual([{ type: 'text', text }])
  expect(text).not.toContain('canary-7f3a')
  await expect(call(client, 'no-such-tool', {})).rejects.toThrow('There is no tool no-such-tool.')
})

test('a client that disconnects ends the wait and not the run', async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const account = await service.createAccount()
  const client = await connect(account.key)
  const file = join(directory, 'go')
  const held = new Promise<void>((resolve) => {
    const onprogress = ({ message }: { message?: string | undefined }) => message === 'Holding' && resolve()
    call(client, 'hold', { file }, { onprogress }).catch(() => {})
  })
  await held
  await client.close()
  writeFileSync(file, '')
  const list = () => send(service, 'listRuns', account.key)
  await expect.poll(async () => (await list()).body.data[0].status, { timeout: 20_000 }).toBe('succeeded')
})

test('keys and scopes are those of the operations', async () => {
  const account = await service.createAccount({ scopesEnabled: true })
  const keyWith = async (...scopes: string[]) => ({ key: (await account.createKey({ scopes })).value })
  const greet = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'greet', arguments: { name: 'Ada' } } }
  const statuses = async (key: { key: string }) => [
    (await post(withKey(key))).status,
    (await post(withKey(key), greet)).status,
  ]
  expect(await statuses(await keyWith('workflows:read'))).toEqual([200, 403])
  expect(await statuses(await keyWith('runs:write'))).toEqual([403, 403])
  expect(await statuses(await keyWith('runs:write', 'runs:read'))).toEqual([403, 200])
  for (const headers of [{}, withKey({ key: crypto.randomUUID() }), { 'x-service-api-key': account.key }]) {
    const refused = await post(headers as Record<string, string>)
    expect([refused.status, await refused.text()]).toEqual([401, 'Unauthorized'])
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="execution-service"')
  }
  const { id, value } = await account.createKey()
  await account.deleteKey(id)
  expect((await post(withKey({ key: value }))).status).toBe(401)
})

test('the scopes of requests about tasks are those of the operations', async () => {
  const account = await service.createAccount({ scopesEnabled: true })
  const keyWith = async (scope: string) => withKey({ key: (await account.createKey({ scopes: [scope] })).value })
  const [reader, lister] = [await keyWith('runs:read'), await keyWith('workflows:read')]
  const task = { jsonrpc: '2.0', id: 1, params: { taskId: crypto.randomUUID() } }
  for (const [method, status] of Object.entries({ 'tasks/get': 200, 'tasks/result': 200, 'tasks/cancel': 403 })) {
    expect((await post(reader, { ...task, method })).status).toBe(status)
    expect((await post(lister, { ...task, method })).status).toBe(403)
  }
})

test('a method that has the name of a member of each object is unknown, whatever the scopes', async () => {
  const account = await service.createAccount({ scopesEnabled: true })
  const key = withKey({ key: (await account.createKey({ scopes: ['runs:read'] })).value })
  for (const method of ['constructor', '__proto__', 'toString']) {
    const response = await post(key, { jsonrpc: '2.0', id: 1, method })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('-32601')])
  }
})

test('a run token is no credential here', async () => {
  const account = await service.createAccount()
  const result = await call(await connect(account.key), 'greet', { name: 'Ada' })
  const body = { runId: runIdOf(result), expiresInSeconds: 60 }
  const { token } = (await send(service, 'createRunToken', account.key, { body }).expect(201)).body
  expect((await post(withKey({ key: token }))).status).toBe(401)
})

test('other methods, origins, media types, sizes and several messages are refused', async () => {
  const account = await service.createAccount()
  const key = withKey(account)
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(url(), { method, headers: { ...key, Accept: 'text/event-stream' } })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  }
  expect((await post({ ...key, Origin: 'https://site.example.com' })).status).toBe(403)
  expect((await post({ ...key, 'Content-Type': 'text/plain' })).status).toBe(415)
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'greet', arguments: { name: 'Ada' } } }
  expect((await post({ ...key, Accept: 'application/json' }, call)).status).toBe(406)
  expect((await post(key, `"${'x'.repeat(1024 * 1024)}"`)).status).toBe(413)
  for (const body of ['{', '', [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }], { id: 1 }])
    expect((await post(key, body)).status).toBe(400)
})

test('requests count towards the rate limit of the key, and are logged with it', async () => {
  const account = await service.createAccount()
  const key = withKey(account)
  const first = await post(key)
  expect(first.headers.get('ratelimit')).toBe('"api-key";r=59;t=60')
  expect(first.headers.get('x-request-id')).not.toBeNull()
  await first.text()
  const logged = () => service.log.filter(({ accountId, msg }) => accountId === account.id && msg === 'request')
  await expect.poll(() => logged().length).toBe(1)
  let last = first
  for (let count = 0; count < 60; count++) last = await post(key)
  expect(last.status).toBe(429)
  expect(last.headers.get('retry-after')).toMatch(/^[0-9]+$/)
  expect(await last.json()).toMatchObject({ type: '/docs/errors#rate-limited' })
})
