/** A file of 30 MB goes by the client to a run, with workers inside and outside of the service. */
import { type ChildProcess, spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { main, startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { send } from './requests.ts'

let service: TestService
let account: TestAccount
let worker: ChildProcess
beforeAll(async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('file-workflows', import.meta.url))
  service = await startTestService({ worker: false, settings: { WORKFLOWS_DIR } })
  account = await service.createAccount()
})
afterAll(async () => {
  worker?.kill('SIGTERM')
  if (worker?.exitCode === null) await once(worker, 'exit')
  await service?.stop()
})

const content = randomBytes(30_000_000)
const sha256 = hash('sha256', content)

test('a run of a worker outside of the service reads 30 MB that the client has streamed', {
  timeout: 60_000,
}, async () => {
  const client = createExecutionClient({ baseUrl: service.executionUrl, apiKey: account.key })
  const query = { name: 'scan.pdf' }
  const body = new Blob([content], { type: 'application/pdf' })
  const uploaded = unwrap(await client.createFile({ params: { query }, body: body.stream() }))
  expect(uploaded).toMatchObject({ bytes: content.length, sha256, mediaType: 'application/octet-stream' })
  const [file, again] = await Promise.all(
    [1, 2].map(async () => unwrap(await client.createFile({ params: { query }, body }))),
  )
  expect(again?.id).toBe(file?.id)
  const key = await account.createKey({ scopes: ['runs:execute'] })
  const environment = { PATH: process.env.PATH ?? '', API_KEY: key.value, LOG_LEVEL: 'warn' }
  const args = [main, 'worker', '--url', service.executionUrl]
  worker = spawn(process.execPath, args, { env: environment, stdio: 'inherit' })
  const variables = { document: file?.id ?? '', pages: [{ scan: uploaded.id }] }
  const run = unwrap(await client.runs.queueAndWait('digest', variables))
  const described = { name: 'scan.pdf', bytes: content.length, sha256 }
  expect(run.output, JSON.stringify(run.error)).toEqual({ files: [described, described], document: file?.id })
  const downloaded = unwrap(await client.getFile({ params: { path: { fileId: uploaded.id } } }))
  expect(hash('sha256', new Uint8Array(await downloaded.arrayBuffer()))).toBe(sha256)
})

test('a client that stops in the middle of a download disturbs nothing', async () => {
  const body = new Blob([content])
  const client = createExecutionClient({ baseUrl: service.executionUrl, apiKey: account.key })
  const { id } = unwrap(await client.createFile({ body }))
  const url = `${service.executionUrl}/v1/execution/files/${id}`
  for (let download = 0; download < 10; download += 1) {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${account.key}` } })
    await response.body?.cancel()
  }
  await send(service, 'getFile', account.key, { path: { fileId: id }, headers: { Range: 'bytes=0-9' } }).expect(206)
  expect(service.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})
