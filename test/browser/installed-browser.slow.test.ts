/** Browsers that are installed on the system, whose sockets have longer paths than those of the Chromium from npm. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { expect, type TestContext, test, vi } from 'vitest'
import { BrowserHost } from '../../src/worker/browser/browser-host.ts'
import { openBrowser } from '../../src/worker/browser/connection.ts'
import { findBrowser } from '../../src/worker/browser/find-browser.ts'
import { installedChromium } from '../support/browsing.ts'
import { newDirectory } from '../support/domain.ts'

/** Puts a Chromium on the PATH. */
async function installChromium(test: TestContext): Promise<void> {
  vi.stubEnv('PATH', `${await installedChromium(test)}:/usr/bin:/bin`)
  test.onTestFinished(() => void vi.unstubAllEnvs())
}

/** A directory whose path has this many characters. */
async function directoryOf(length: number, test: TestContext): Promise<string> {
  const parent = await newDirectory(test)
  const directory = join(parent, 'x'.repeat(length - parent.length - 1))
  mkdirSync(directory)
  return directory
}

async function openPage(test: TestContext, path?: string): Promise<{ from: string | undefined; title: string }> {
  const host = new BrowserHost({ path, cdpUrl: undefined }, pino({ level: 'silent' }))
  test.onTestFinished(() => host.close())
  const { context, close } = await openBrowser(await host.acquire(), undefined)
  const page = await context.newPage()
  await page.goto('data:text/html,<title>Mine</title>')
  const opened = { from: host.describe()?.from, title: await page.title() }
  await close()
  host.release()
  return opened
}

const hasBundled = process.platform === 'linux' && process.arch === 'x64'

test.runIf(hasBundled).for([
  ['the usual one', undefined],
  ['one of 80 characters', 80],
] as const)('an installed browser has a directory for its sockets when TMPDIR is %s', async ([, length], test) => {
  await installChromium(test)
  vi.stubEnv('TMPDIR', length === undefined ? '/tmp' : await directoryOf(length, test))
  expect(await openPage(test)).toEqual({ from: 'system', title: 'Mine' })
})

test('the browser of this machine opens a page with a TMPDIR of 80 characters', async (test) => {
  const installed = await findBrowser(undefined, process.env).catch(() => undefined)
  test.skip(installed?.from !== 'system', 'no browser is installed')
  vi.stubEnv('TMPDIR', await directoryOf(80, test))
  test.onTestFinished(() => void vi.unstubAllEnvs())
  expect(dirname(installed?.executable ?? '')).not.toBe('')
  expect(await openPage(test)).toEqual({ from: 'system', title: 'Mine' })
})
