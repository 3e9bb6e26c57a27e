/** Runs get the files that their variables name, and nothing of them remains afterwards. */
import { hash, randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { createFile, queueRun, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('file-workflows', import.meta.url))
  service = await startTestService({ settings: { WORKFLOWS_DIR } })
})
afterAll(() => service.stop())

const toDigest = (variableData: object) => ({ path: { workflowId: 'digest' }, query: '', body: { variableData } })
const describeFile = (name: string, content: Buffer) => ({
  name,
  bytes: content.length,
  sha256: hash('sha256', content),
})

// biome-ignore lint/suspicious/noExplicitAny: responses have been checked against the document
async function finish(account: TestAccount, variableData: object): Promise<any> {
  const runId = await queueRun(service, account, toDigest(variableData))
  const read = async () => (await send(service, 'getRun', account.key, { path: { runId } })).body
  await expect.poll(async () => (await read()).finishedAt, { timeout: 20_000, interval: 50 }).not.toBeNull()
  return read()
}

/** Directories of attempts that have files. */
function attemptDirectories(): string[] {
  const roots = readdirSync(tmpdir()).filter((name) => name.startsWith('execution-service-files-'))
  return roots.flatMap((root) => readdirSync(join(tmpdir(), root)).filter((name) => !name.startsWith('lock')))
}

test('a workflow gets the path of each file, at any place of its variables, and the run shows their ids only', async () => {
  const account = await service.createAccount()
  const contents = [randomBytes(10_000), Buffer.alloc(0), randomBytes(5_000_000), randomBytes(100)]
  const ids = await Promise.all(contents.map((content) => createFile(service, account, content, 'name=scan.pdf')))
  const [document, first, second, hidden] = ids as [string, string, string, string]
  const pages = [{ scan: first.toUpperCase() }, { scan: second }]
  const run = await finish(account, { document, pages, hidden, other: 'https://example.com/' })
  expect(run, JSON.stringify(run.error)).toMatchObject({ status: 'succeeded' })
  expect(run.output).toEqual({
    files: contents.map((content) => describeFile('scan.pdf', content)),
    document,
    other: 'https://example.com/',
  })
  expect(run.variableData).toMatchObject({ document, pages, hidden: '********' })
  const events = await send(service, 'streamRunEvents', account.key, { path: { runId: run.id } })
  expect(events.text).toContain(`Reading ${document}`)
  expect(events.text).not.toContain('execution-service-files-')
  await expect.poll(attemptDirectories).toEqual([])
})

test('a workflow gives a file to a run that it calls, and an error names its id', async () => {
  const account = await service.createAccount()
  const content = randomBytes(3000)
  const document = await createFile(service, account, content)
  const { output } = await finish(account, { document, calls: true })
  const described = { files: [describeFile('invoice.pdf', content)], document }
  expect(output).toEqual({ ...described, called: described })
  const failed = await finish(account, { document, fails: true })
  expect(failed.error.message).toBe(`Cannot read ${document}`)
})

test('a run is refused unless its variables name files of the account', async () => {
  const [account, other] = [await service.createAccount(), await service.createAccount()]
  const foreign = await createFile(service, other)
  const expired = await createFile(service, account)
  await service.change('UPDATE files SET expires_at = 1 WHERE id = ?', expired)
  const noSuchFile = 'names no file of this account'
  for (const document of [foreign, expired, crypto.randomUUID()]) {
    const { body } = await send(service, 'queueRemoteRun', account.key, toDigest({ document })).expect(400)
    expect(body.errors).toEqual([{ pointer: '/variableData/document', detail: noSuchFile }])
  }
  const { body } = await send(service, 'queueRemoteRun', account.key, toDigest({ document: '/etc/passwd' })).expect(400)
  const detail = 'must be the id of a file, which createFile returns'
  expect(body.errors).toEqual([{ pointer: '/variableData/document', detail }])
  const own = await createFile(service, account, Buffer.from('Own'))
  const runs = [{ document: own }, { document: own, pages: [{ scan: foreign }] }].map((variableData) => {
    return { workflowId: 'digest', variableData, delaySeconds: 3600 }
  })
  const batch = await send(service, 'queueRemoteRunBatch', account.key, { body: { runs } }).expect(400)
  expect(batch.body.errors).toEqual([{ pointer: '/runs/1/variableData/pages/0/scan', detail: noSuchFile }])
  expect(await service.rows('SELECT id FROM runs WHERE account_id = ?', account.id)).toEqual([])
  const schedule = { workflowId: 'digest', variableData: { document: foreign }, cron: '0 0 29 2 *' }
  const refused = await send(service, 'createSchedule', account.key, { body: schedule }).expect(400)
  expect(refused.body.errors).toEqual([{ pointer: '/variableData/document', detail: noSuchFile }])
})

test('a run whose file is missing fails, and says which', async () => {
  const account = await service.createAccount()
  const document = await createFile(service, account)
  const filled = { ...toDigest({ document }), query: 'delaySeconds=3600' }
  const runId = await queueRun(service, account, filled)
  await service.change('DELETE FROM run_files WHERE run_id = ?', runId)
  await service.change('UPDATE runs SET available_at = 0 WHERE id = ?', runId)
  const read = async () => (await send(service, 'getRun', account.key, { path: { runId } })).body
  await expect.poll(async () => (await read()).status, { timeout: 20_000, interval: 50 }).toBe('failed')
  expect((await read()).error).toMatchObject({
    name: 'FileMissing',
    message: `The file ${document}, which variableData/document names, no longer exists.`,
  })
})
