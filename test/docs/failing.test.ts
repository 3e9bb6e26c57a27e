/** A site that cannot be built: whoever asks for it is told so, once, and whoever asks later may have it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { listen } from '../../src/contract/listener.ts'
import { mountDocument } from '../../src/contract/mount.ts'
import { executionContract } from '../../src/openapi/served-documents.ts'
import { readOperations } from '../../src/openapi/served-operations.ts'
import { type Building, docsHandler } from '../../src/surfaces/docs/docs-handler.ts'
import { sendRaw } from '../operations/http.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

interface Context {
  onTestFinished(act: () => unknown): void
}

/** The file of a thread, and how to have it do something else. */
function threadThat(context: Context, does: string) {
  const directory = temporaryDirectory()
  context.onTestFinished(() => removeDirectory(directory))
  const file = join(directory, 'thread.mjs')
  const becomes = (code: string) => writeFileSync(file, code)
  becomes(does)
  return { thread: pathToFileURL(file), becomes }
}

/** The docs beside an API of which nothing else is asked, with what is logged and counted of each request. */
async function serving(context: Context, building: Building) {
  const log: { msg: string; requestId: string }[] = []
  const counted: number[] = []
  const docs = docsHandler(() => ({}), building)
  const operations = readOperations(executionContract.document as never)
  const app = await mountDocument({
    name: 'the API of the test',
    ...executionContract,
    handlers: Object.fromEntries(operations.map(({ id }) => [id, async () => ({ status: 200 })])),
    authenticate: async () => undefined,
    fallback: () => docs,
    isUnavailable: () => false,
    log: pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) }),
    observe: (_operationId, _method, status) => void counted.push(status),
  })
  const listener = await listen(app, { host: '127.0.0.1', port: 0, name: 'PORT' })
  context.onTestFinished(() => listener.stop(0))
  return { log, counted, get: () => sendRaw(listener.url, { method: 'GET', path: '/docs/' }) }
}

test('a build that ends without a site is a 500, logged and counted once; the next request builds anew', async (context) => {
  const { thread, becomes } = threadThat(context, 'process.exit(0)')
  const { log, counted, get } = await serving(context, { thread, secondsMax: 60 })
  const refused = await get()
  expect([refused.status, JSON.parse(refused.text).type]).toEqual([500, '/docs/errors#internal-error'])
  const { requestId } = JSON.parse(refused.text)
  expect(refused.headers['x-request-id']).toBe(requestId)
  becomes(`
    import { parentPort } from 'node:worker_threads'
    const file = { content: Buffer.from('built'), mediaType: 'text/plain', digest: 'digest', lasting: false }
    parentPort.postMessage(new Map([['index.html', file]]))
  `)
  expect(await get()).toMatchObject({ status: 200, text: 'built' })
  await expect.poll(() => counted).toEqual([500, 200])
  const ofFailure = log.filter((line) => line.requestId === requestId)
  expect(ofFailure.map(({ msg }) => msg)).toEqual(['The request failed.', 'request'])
})

test('a build that never ends is given up', async (context) => {
  const { thread } = threadThat(context, 'setInterval(() => {}, 1000)')
  const { log, get } = await serving(context, { thread, secondsMax: 0.1 })
  expect((await get()).status).toBe(500)
  expect(JSON.stringify(log)).toContain('The docs were not built: it took more than 0.1 seconds.')
})
