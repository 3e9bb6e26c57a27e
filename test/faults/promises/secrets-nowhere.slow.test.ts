/**
 * P11: a key's value, a secret variable or answer, a context's cookies, and the password and the TOTP seed of its sign-in appear in no
 * file, log, row or error, even with the most verbose logs of the service and of the database server, which logs every statement with its parameters.
 */
import { Secret } from 'otpauth'
import { describe, expect, test } from 'vitest'
import { createState } from '../../support/browser-contexts.ts'
import { findCanaries, readFiles } from '../../support/canaries.ts'
import { type ApiMember, type Fleet, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { waitForOutcome } from '../../support/ledger.ts'
import { record } from '../figures.ts'

/** Makes PostgreSQL log everything that it receives. */
const verboseLogging = {
  log_statement: 'all',
  log_min_duration_statement: '0',
  log_parameter_max_length: '-1',
  log_parameter_max_length_on_error: '-1',
  log_error_verbosity: 'verbose',
  log_min_messages: 'debug1',
}

interface Sent {
  status: number
  text: string
}

function caller(key: string, responses: string[]) {
  return async (url: string, method: string, path: string, body?: unknown): Promise<Sent> => {
    const credential = path.startsWith('/alpha/') ? { 'x-service-api-key': key } : { Authorization: `Bearer ${key}` }
    const headers = { ...credential, 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body: text }) })
    const sent = { status: response.status, text: await response.text() }
    responses.push(sent.text)
    return sent
  }
}

type Call = ReturnType<typeof caller>

/** Queues runs that leak their secret: one succeeds, one fails, one waits, and some are refused. */
async function useSecrets(call: Call, { executionUrl }: ApiMember, token: string): Promise<string[]> {
  const queue = '/v1/execution/queue-remote/betray'
  const variableData = { token, nested: { token }, fails: false }
  const ids: string[] = []
  for (const fails of [false, true]) {
    const { status, text } = await call(executionUrl, 'PUT', queue, { variableData: { ...variableData, fails } })
    expect(status).toBe(202)
    ids.push(JSON.parse(text).id)
  }
  expect((await call(executionUrl, 'PUT', `${queue}?delaySeconds=3600`, { variableData })).status).toBe(202)
  expect((await call(executionUrl, 'PUT', queue, { variableData: { ...variableData, fails: token } })).status).toBe(400)
  expect((await call(executionUrl, 'PUT', queue, `{"variableData":{"token":"${token}"`)).status).toBe(400)
  return ids
}

/** Answers a run that leaks the answer, goes through another wait and ends; some answers are refused. */
async function useAnswer(call: Call, { executionUrl }: ApiMember, token: string): Promise<string> {
  const queued = await call(executionUrl, 'PUT', '/v1/execution/queue-remote/confide', { variableData: {} })
  const { id } = JSON.parse(queued.text)
  const answer = async (name: string, value: unknown) => {
    const body = typeof value === 'string' ? value : { value }
    return (await call(executionUrl, 'PUT', `/v1/execution/runs/${id}/waits/${name}`, body)).status
  }
  expect(await answer('secret', { token, unknown: token })).toBe(400)
  expect(await answer('secret', `{"value":{"token":"${token}"`)).toBe(400)
  expect(await answer('secret', { token })).toBe(200)
  expect(await answer('secret', { token })).toBe(200)
  expect(await answer('secret', { token: `${token}, changed` })).toBe(409)
  expect(await answer('next', true)).toBe(200)
  return id
}

async function useCookies(call: Call, { browserContextUrl }: ApiMember, value: string): Promise<void> {
  const created = await call(browserContextUrl, 'POST', '/alpha/browser-contexts', { name: 'With cookies' })
  const path = `/alpha/browser-contexts/${JSON.parse(created.text).id}/storage-state`
  expect((await call(browserContextUrl, 'PUT', path, createState(value))).status).toBe(204)
  const broken = JSON.stringify(createState(value)).slice(0, -1)
  expect((await call(browserContextUrl, 'PUT', path, broken)).status).toBe(400)
}

/** Sets a sign-in, queues its run, and sends some that are refused. */
async function useSignIn(call: Call, { browserContextUrl }: ApiMember, password: string, totpSeed: string) {
  const created = await call(browserContextUrl, 'POST', '/alpha/browser-contexts', { name: 'With a sign-in' })
  const path = `/alpha/browser-contexts/${JSON.parse(created.text).id}/sign-in`
  const signIn = { workflowId: 'sign-in', variableData: { user: 'ada', password }, totpSeed }
  const put = async (body: unknown) => (await call(browserContextUrl, 'PUT', path, body)).status
  expect(await put({ ...signIn, totpSeed: `${totpSeed}-0189` })).toBe(400)
  expect(await put({ ...signIn, variableData: { user: 7, password: [password] } })).toBe(400)
  expect(await put(JSON.stringify(signIn).slice(0, -1))).toBe(400)
  expect(await put(signIn)).toBe(200)
  expect((await call(browserContextUrl, 'GET', path)).status).toBe(200)
  expect((await call(browserContextUrl, 'POST', `${path}/now`)).status).toBe(202)
}

async function useKey(call: Call, { executionUrl, browserContextUrl }: ApiMember, value: string): Promise<void> {
  expect((await call(executionUrl, 'GET', `/v1/execution/runs/${value}`)).status).toBe(404)
  expect((await call(browserContextUrl, 'GET', `/alpha/browser-contexts/${value}`)).status).toBe(404)
  expect((await call(executionUrl, 'GET', `/v1/execution/runs?cursor=${value}`)).status).toBe(400)
  expect((await call(executionUrl, 'GET', `/${value}`)).status).toBe(404)
}

/** Every value of every row, as in a dump, because PostgreSQL compresses long values in its files. */
async function rowsIn(fleet: Fleet): Promise<Buffer> {
  return fleet.withStore(async ({ read }) => {
    const values: unknown[] = []
    for (const { schema, name } of await read.query.introspection.getTables()) {
      const from = schema === undefined ? read.query : read.query.withSchema(schema)
      const rows = await from
        .selectFrom(name as 'runs')
        .selectAll()
        .execute()
      values.push(...rows.flatMap((row) => Object.values(row)))
    }
    return Buffer.concat(values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : text(value))))
  })
}

const text = (value: unknown) => Buffer.from(typeof value === 'object' ? JSON.stringify(value) : String(value))

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('keys, secret variables and answers, cookies, passwords and seeds of sign-ins appear nowhere', async (test) => {
    const fleet = await newFleet(test, kind, { settings: { LOG_LEVEL: 'trace' }, server: verboseLogging })
    const { key } = await fleet.createAccount()
    const api = await fleet.api()
    const worker = await fleet.worker()
    const token = `canary-${crypto.randomUUID()} "quoted"`
    const answer = `canary-${crypto.randomUUID()} 'quoted'`
    const cookie = `canary-${crypto.randomUUID()}`
    const password = `canary-${crypto.randomUUID()} <quoted>`
    const seed = new Secret({ size: 20 }).base32
    const responses: string[] = []
    const call = caller(key, responses)
    const ids = [...(await useSecrets(call, api, token)), await useAnswer(call, api, answer)]
    await useCookies(call, api, cookie)
    await useSignIn(call, api, password, seed)
    await useKey(call, api, key)
    await fleet.withStore((store) => waitForOutcome(store, ids))
    for (const id of ids) {
      await call(api.executionUrl, 'GET', `/v1/execution/runs/${id}`)
      await call(api.executionUrl, 'GET', `/v1/execution/runs/${id}/waits`)
    }
    const { status } = JSON.parse((await call(api.executionUrl, 'GET', `/v1/execution/runs/${ids.at(-1)}`)).text)
    expect(status).toBe('succeeded')
    const rows = await rowsIn(fleet)
    const readContents = (): [string, Buffer | string][] => [
      ...readFiles(fleet.storage.directory),
      ['the log of the API', api.output()],
      ['the log of the worker', worker.output()],
      ["the server's log", fleet.storage.server?.log() ?? ''],
    ]
    const canaries = { key, token, answer, cookie, password, seed }
    const findIn = (searched: [string, Buffer | string][]) =>
      Object.entries(canaries).flatMap(([name, value]) =>
        findCanaries(searched, [value]).map((location) => `${name}: ${location}`),
      )
    const outputs = responses.map((each): [string, string] => ['a response', each])
    const running = findIn([...readContents(), ...outputs, ['a dump', rows]])
    await Promise.all([fleet.kill(), fleet.storage.server?.end('SIGINT')])
    const stopped = findIn(readContents())
    const searched = readContents().length + 1
    record({
      promise: 'P11',
      store: kind.name,
      fault: `${Object.keys(canaries).length} canaries in files, logs, rows, errors`,
      figures: {},
      remark: `${searched} places searched; found in ${new Set([...running, ...stopped]).size}`,
    })
    expect(running).toEqual([])
    expect(stopped).toEqual([])
    // The search finds what is there.
    const prefix = key.slice(0, 8)
    expect(findCanaries(readContents(), [prefix]).length).toBeGreaterThan(0)
    expect(findCanaries([['a dump', rows]], [prefix])).toEqual(['a dump'])
    if (fleet.storage.server) expect(findCanaries([['log', fleet.storage.server.log()]], [prefix])).toEqual(['log'])
  })
})
