/** The choice of a browser, with fake browsers on the PATH. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, type TestContext, test, vi } from 'vitest'
import { BrowserMissing, findBrowser, hasPackage } from '../../src/worker/browser/find-browser.ts'
import { newDirectory } from '../support/domain.ts'

const chromium = 'echo "Chromium 153.0.1.2 built on Debian"'
/** Ubuntu installs this stub instead of a browser. */
const stub = 'echo "Command requires the chromium snap to be installed." >&2\nexit 10'

/** Creates a directory with these programs and makes it the PATH until the test ends. */
async function onlyOnPath(test: TestContext, programs: Record<string, string>): Promise<string> {
  const directory = await newDirectory(test)
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  vi.stubEnv('PATH', directory)
  test.onTestFinished(() => void vi.unstubAllEnvs())
  return directory
}

test('an installed Chrome is preferred to an installed Chromium', async (test) => {
  const programs = { chromium, 'google-chrome': 'echo "Google Chrome 153.0.1.2 "' }
  const directory = await onlyOnPath(test, programs)
  expect(await findBrowser(undefined, process.env)).toEqual({
    from: 'system',
    executable: join(directory, 'google-chrome'),
    version: 'Google Chrome 153.0.1.2',
    environment: {},
  })
})

test('installed programs that print no version of Chromium or do not run are skipped', async (test) => {
  const programs = {
    'google-chrome': 'echo "hello"',
    'google-chrome-stable': 'exec /nowhere',
    'chromium-browser': stub,
  }
  const directory = await onlyOnPath(test, programs)
  mkdirSync(join(directory, 'chromium'))
  const found = await findBrowser(undefined, process.env).catch((error) => error)
  // The npm package has a browser for some machines only.
  expect(found instanceof BrowserMissing || found.from === 'npm').toBe(true)
})

test('a configured browser is preferred to an installed one', async (test) => {
  const directory = await onlyOnPath(test, { chromium, mine: 'echo "Chromium 99.0"' })
  const executable = join(directory, 'mine')
  expect(await findBrowser(executable, process.env)).toMatchObject({
    from: 'BROWSER_PATH',
    executable,
    version: 'Chromium 99.0',
  })
})

test.for([
  ['does not exist', 'absent', 'ENOENT'],
  ['does not run', 'stub', 'Command requires the chromium snap to be installed.'],
  ['is no browser', 'other', 'its reply to --version, "curl 8.5.0\\n", is not that of Chrome or Chromium'],
] as const)('a configured browser that %s is an error, and no other is tried', async ([, name, reason], test) => {
  const directory = await onlyOnPath(test, { chromium, stub, other: 'echo "curl 8.5.0"' })
  const path = join(directory, name)
  await expect(findBrowser(path, process.env)).rejects.toThrow(
    new BrowserMissing(
      `BROWSER_PATH is "${path}", which does not run (${reason}): set it to the executable of Chrome or Chromium.`,
    ),
  )
})

test.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'without an installed browser, the one of the npm package runs',
  async (test) => {
    await onlyOnPath(test, {})
    expect(await findBrowser(undefined, process.env)).toMatchObject({
      from: 'npm',
      version: expect.stringMatching(/^Chromium \d/),
    })
  },
)

test('without any browser, the error says what to install', async (test) => {
  const directory = await newDirectory(test)
  cpSync(fileURLToPath(new URL('../../src', import.meta.url)), join(directory, 'src'), { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
  const script = `import { findBrowser } from ${JSON.stringify(join(directory, 'src/worker/browser/find-browser.ts'))}
    await findBrowser(undefined, process.env).catch((error) => console.log(error.constructor.name, error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: directory },
  })
  expect(stdout.trim()).toBe(
    `BrowserMissing No browser is installed: ${hasPackage ? 'run `npx execution-service browser install`, ' : ''}install Google ` +
      'Chrome or Chromium, or set BROWSER_PATH to its executable or BROWSER_CDP_URL to the address of a running one.',
  )
})
