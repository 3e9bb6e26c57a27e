/** Errors that prevent the start are one sentence with advice. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { removeDirectory, serviceSettings, temporaryDirectory } from '../support/service.ts'
import { newStorage } from '../support/service-storage.ts'
import { refusedStart } from './caller.ts'

describe.concurrent('the service', () => {
  test('does not start on a port in use', async (context) => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    context.onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const sentence = `127.0.0.1:${port} is in use by another program: set BROWSER_CONTEXT_PORT to another port`
    expect(await refusedWith({ BROWSER_CONTEXT_PORT: String(port) })).toContain(sentence)
  })

  test('does not start with a workflow that fails to load, and names it', async (context) => {
    const directory = temporaryDirectory()
    context.onTestFinished(() => removeDirectory(directory))
    writeFileSync(join(directory, 'broken.ts'), "throw new Error('No such luck')\n")
    const sentence = await refusedWith({ WORKFLOWS_DIR: directory })
    expect(sentence).toMatch(/broken\.ts:1 failed to load: Error: No such luck\.$/)
  })

  test.each<[what: string, changes: Record<string, string>, sentence: string | RegExp]>([
    ['an invalid port', { EXECUTION_PORT: 'http' }, /^EXECUTION_PORT is "http": set it to a whole number/],
    [
      'a missing directory of workflows',
      { WORKFLOWS_DIR: '/nonexistent' },
      /^The directory of workflows \(\/nonexistent\) cannot be read: /,
    ],
    // Root cannot be refused access, and others cannot start its processes.
    [
      'an executor user that cannot run workflows',
      { EXECUTOR_UID: '65534', WORKFLOWS_DIR: '/root' },
      /^EXECUTOR_UID is /,
    ],
    ['an invalid executor user', { EXECUTOR_UID: 'nobody' }, /^EXECUTOR_UID is "nobody": set it to a whole number/],
    ['a data directory that is a file', { DATA_DIR: 'package.json' }, /^DATA_DIR /],
  ])('does not start with %s, and says in one sentence what to set', async (_, changes, sentence) => {
    expect(await refusedWith(changes)).toMatch(sentence)
  })
})

async function refusedWith(changes: Record<string, string>): Promise<string> {
  const { settings, remove } = await newStorage()
  const sentence = await refusedStart({ ...serviceSettings(settings), ...changes })
  await remove()
  return sentence
}
