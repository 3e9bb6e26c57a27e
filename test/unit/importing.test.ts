/** A module does nothing when it is imported: what a process does stands in what it calls. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

/** Modules that are the start of a process or of a thread. */
const programs = [
  'main.ts',
  'client/types-command.ts',
  'commands/launcher.ts',
  'domain/deployments/compare-thread.ts',
  'domain/workflows/schema-thread.ts',
  'simulator/world-thread.ts',
  'surfaces/docs/site-thread.ts',
  'worker/browser/host-process.ts',
  'worker/browser/remote-browser.ts',
  'worker/browser/unpack-chromium.ts',
  'worker/executors/executor.ts',
]

/** What `workflows init` copies. */
const template = 'commands/project/template/'

const modules = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('tools/') && !file.startsWith(template))
  .filter((file) => !programs.includes(file))

test('importing a module opens nothing, and changes neither the process nor V8', async () => {
  const changes = await importAll(modules.map((file) => join(source, file)))
  expect(modules.length).toBeGreaterThan(250)
  expect(changes).toEqual({})
})

test('a timer, a listener, a variable or a V8 flag of a module is noticed', async () => {
  const module = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`
  const texts = [
    'setInterval(() => {}, 1000)',
    'process.on("exit", () => {})',
    'process.env.ADDED = "1"',
    'process.noDeprecation = true',
    'import { setFlagsFromString } from "node:v8"; setFlagsFromString("--heap-growing-percent=40")',
  ].map(module)
  expect(Object.keys(await importAll(texts))).toEqual(texts)
})

async function importAll(specifiers: readonly string[]): Promise<Record<string, string[]>> {
  const child = fork(fileURLToPath(new URL('./import-modules.ts', import.meta.url)), specifiers, { execArgv: [] })
  try {
    const [changes] = (await once(child, 'message')) as [Record<string, string[]>]
    return changes
  } finally {
    child.kill('SIGKILL')
  }
}
