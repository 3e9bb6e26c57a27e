/** What a service responds when its docs cannot be built. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { listen } from '../../src/contract/listener.ts'
import { mountDocument } from '../../src/contract/mount.ts'
import { executionContract } from '../../src/openapi/served-documents.ts'
import { readOperations } from '../../src/openapi/served-operations.ts'
import { type Build, BuiltDocs, docsHandler } from '../../src/surfaces/docs/docs-handler.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

interface Context {
  onTestFinished(act: () => unknown): void
}

/** A module for a worker thread, and a function that replaces its code. */
function threadModule(context: Context, code: string) {
  const directory = temporaryDirectory()
  context.onTestFinished(() => removeDirectory(directory))
  const file = join(directory, 'thread.mjs')
  const replaceCode = (next: string) => writeFileSync(file, next)
  replaceCode(code)
  return { thread: pathToFileURL(file), replaceCode }
}

/** Serves the docs next to an API, and records log lines and response statuses. */
async function serveDocs(context: Context, build: Build) {
  const log: { msg: string; requestId: string }[] = []
  const statuses: number[] = []
  const docs = docsHandler(new BuiltDocs(() => ({}), build))
  const operations = readOperations(executionContract.document as never)
  const app = await mountDocument({
    name: 'the API of the test',
    realm: '',
    ...executionContract,
    handlers: Object.fromEntries(operations.map(({ id }) => [id, async () => ({ status: 200 })])),
    authenticate: async () => undefined,
    fallback: () => docs,
    isUnavailable: () => false,
    log: pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) }),
    observe: (_operationId, _method, status) => void statuses.push(status),
  })
  const listener = await listen(app, { host: '127.0.0.1', port: 0, name: 'PORT' })
  context.onTestFinished(() => listener.stop(0))
  return { log, statuses, get: () => sendRaw(listener.url, { method: 'GET', path: '/docs/' }) }
}

test('a failed build is a 500, logged and counted once, and the next request builds again', async (context) => {
  const { thread, replaceCode } = threadModule(context, 'process.exit(0)')
  const { log, statuses, get } = await serveDocs(context, { thread, timeoutSeconds: 60 })
  const failed = await get()
  expect([failed.status, JSON.parse(failed.text).type]).toEqual([500, '/docs/errors#internal-error'])
  const { requestId } = JSON.parse(failed.text)
  expect(failed.headers['x-request-id']).toBe(requestId)
  replaceCode(`
    import { parentPort } from 'node:worker_threads'
    const content = Buffer.from('built')
    const file = { content, mediaType: 'text/plain', digest: 'digest', immutable: false, scriptHashes: [] }
    parentPort.postMessage({ site: new Map([['index.html', file]]) })
  `)
  expect(await get()).toMatchObject({ status: 200, text: 'built' })
  await expect.poll(() => statuses).toEqual([500, 200])
  const lines = log.filter((line) => line.requestId === requestId)
  expect(lines).toHaveLength(2)
  expect(JSON.stringify(lines[0])).toContain('Building the docs failed: the thread exited with code 0.')
})

test('a build that does not end is stopped after its timeout', async (context) => {
  const { thread } = threadModule(context, 'setInterval(() => {}, 1000)')
  const { log, get } = await serveDocs(context, { thread, timeoutSeconds: 0.1 })
  expect((await get()).status).toBe(500)
  expect(JSON.stringify(log)).toContain('Building the docs failed: no result after 0.1 seconds.')
})
