/** Which browser is found, with programs on the path that answer as browsers do, or do not. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, type TestContext, test, vi } from 'vitest'
import { BrowserMissing, findBrowser } from '../../src/worker/browser/find-browser.ts'
import { newPlace } from '../support/domain.ts'

const chromium = 'echo "Chromium 153.0.1.2 built on Debian"'
/** What Ubuntu installs in place of a browser. */
const stub = 'echo "Command requires the chromium snap to be installed." >&2\nexit 10'

/** A folder with these programs, which alone is searched until the test ends. */
async function onlyOnPath(test: TestContext, programs: Record<string, string>): Promise<string> {
  const directory = await newPlace(test)
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  vi.stubEnv('PATH', directory)
  test.onTestFinished(() => void vi.unstubAllEnvs())
  return directory
}

test('an installed Chrome is taken before an installed Chromium', async (test) => {
  const programs = { chromium, 'google-chrome': 'echo "Google Chrome 153.0.1.2 "' }
  const directory = await onlyOnPath(test, programs)
  expect(await findBrowser(undefined)).toEqual({
    from: 'system',
    executable: join(directory, 'google-chrome'),
    version: 'Google Chrome 153.0.1.2',
    environment: {},
  })
})

test('a program that only tells what to install, says something else, or cannot run is passed over', async (test) => {
  const programs = {
    'google-chrome': 'echo "hello"',
    'google-chrome-stable': 'exec /nowhere',
    'chromium-browser': stub,
  }
  const directory = await onlyOnPath(test, programs)
  mkdirSync(join(directory, 'chromium'))
  const found = await findBrowser(undefined).catch((error) => error)
  // What npm brings, where it brings something.
  expect(found instanceof BrowserMissing || found.from === 'npm').toBe(true)
})

test('the configured one is taken before an installed one', async (test) => {
  const directory = await onlyOnPath(test, { chromium, mine: 'echo "Chromium 99.0"' })
  const executable = join(directory, 'mine')
  expect(await findBrowser(executable)).toMatchObject({ from: 'BROWSER_PATH', executable, version: 'Chromium 99.0' })
})

test.for([
  ['is not there', 'absent', 'ENOENT'],
  ['does not run', 'stub', 'Command requires the chromium snap to be installed.'],
  ['is no browser', 'other', 'it does not answer --version as a Chrome or Chromium does'],
] as const)('a configured one that %s is named, and no other is taken', async ([, name, reason], test) => {
  const directory = await onlyOnPath(test, { chromium, stub, other: 'echo "curl 8.5.0"' })
  const path = join(directory, name)
  await expect(findBrowser(path)).rejects.toThrow(
    new BrowserMissing(
      `BROWSER_PATH is "${path}", which does not run (${reason}): set it to the executable of a Chrome or Chromium.`,
    ),
  )
})

test.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'what npm brings is taken where nothing is installed, and runs',
  async (test) => {
    await onlyOnPath(test, {})
    expect(await findBrowser(undefined)).toMatchObject({ from: 'npm', version: expect.stringMatching(/^Chromium \d/) })
  },
)

test('where npm left its browser out and none is installed, a sentence says what to do', async (test) => {
  const place = await newPlace(test)
  cpSync(fileURLToPath(new URL('../../src', import.meta.url)), join(place, 'src'), { recursive: true })
  writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  const script = `import { findBrowser } from ${JSON.stringify(join(place, 'src/worker/browser/find-browser.ts'))}
    await findBrowser(undefined).catch((error) => console.log(error.constructor.name, error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: place },
  })
  expect(stdout.trim()).toBe(
    'BrowserMissing There is no browser: install Google Chrome or Chromium, or set BROWSER_PATH to its executable ' +
      'or BROWSER_CDP_URL to the address of one that runs.',
  )
})
