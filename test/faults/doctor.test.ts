/** What an operator sees of `doctor`: on an installation that is well, on one that is not, and where there is none yet. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { readFiles } from '../support/canaries.ts'
import { newPlace } from '../support/domain.ts'
import { freePort } from '../support/free-port.ts'
import { newInstallation, runCommand } from '../support/installation.ts'
import { startStoreProcess } from '../support/processes.ts'
import { type Environment, serviceSettings } from '../support/service.ts'
import { sqlite } from '../support/store-kinds.ts'
import { moduleText, writeModules } from '../support/worker.ts'

const noBrowser = { BROWSER_PATH: '/nowhere/chromium' }

interface Report {
  ok: boolean
  version: string
  checks: { name: string; status: string; detail: string; advice: string | null }[]
}

/** What `doctor --json` says, by the names of the checks. */
async function examined(settings: Environment) {
  const { code, stdout, stderr } = await runCommand(['doctor', '--json'], settings)
  const report: Report = JSON.parse(stdout)
  const checks = Object.fromEntries(report.checks.map((check) => [check.name, check]))
  return { code, stderr, report, checks }
}

async function freePorts(): Promise<Environment> {
  const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT']
  const ports = new Set<number>()
  while (ports.size < names.length) ports.add(await freePort())
  return Object.fromEntries([...ports].map((port, index) => [names[index] ?? '', String(port)]))
}

test('finds nothing wrong with a service that runs, its browser included, and prints a line for each check', async (test) => {
  // What a module prints when it is loaded is none of it.
  const text = `console.log('loading')\n${moduleText('visit', 'browser: true, run: () => null')}`
  const modules = { WORKFLOWS_DIR: await writeModules(test, { 'visit.ts': text }) }
  const installation = await newInstallation({ ...(await freePorts()), ...modules, ...browserSettings() })
  onTestFinished(installation.remove)
  const service = await installation.start()
  const { code, stdout } = await installation.runCommand('doctor')
  expect(stdout).not.toMatch(/^fail/m)
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  const wrong = lines.slice(0, -2).filter((line) => !/^(ok {2}|warn) {2}\S.{19} {2}\S/.test(line))
  expect(wrong).toEqual([])
  expect(stdout).not.toContain('\u001b')
  const found = Object.fromEntries(lines.map((line) => [line.slice(6, 26).trim(), line.slice(28)]))
  expect(found).toMatchObject({
    store: `${join(installation.dataDirectory, 'service.db')} is whole, and of this version's schema`,
    durability: 'journal_mode is WAL, synchronous is FULL',
    EXECUTION_PORT: `127.0.0.1:${new URL(service.executionUrl).port} is used by the service, which runs`,
    service: `it runs, and is ready (${service.managementUrl}/readyz)`,
    workers: expect.stringMatching(/^1 worker on .+, with 4 slots$/),
    workflows: `1 workflow in ${modules.WORKFLOWS_DIR}, 1 of which uses a browser`,
    browser: expect.stringMatching(/, version \d+\..*, opens a page in \d+\.\d s/),
    isolation: 'what is planted in one browser context is not seen from another',
  })
})

/** The one that tests use, as testBrowser has it. */
function browserSettings(): Environment {
  const { BROWSER_PATH } = process.env
  return BROWSER_PATH ? { BROWSER_PATH } : {}
}

test('says what the first start would make, and makes nothing of it', async (test) => {
  const place = await newPlace(test)
  const directory = join(place, 'not', 'yet')
  const WORKFLOWS_DIR = await writeModules(test, { 'a.mjs': moduleText('a') })
  const { code, stderr, report, checks } = await examined({
    ...serviceSettings({ DATA_DIR: directory }),
    WORKFLOWS_DIR,
    ...noBrowser,
  })
  expect([code, stderr, report.ok, report.version]).toEqual([0, '', true, expect.stringMatching(/^\d+\.\d+\.\d+/)])
  expect(checks['data directory']?.detail).toBe(
    `${directory} does not exist; the first start makes it, with the store and its encryption key`,
  )
  expect(checks.store).toMatchObject({ status: 'ok', detail: 'there is none yet; the first start makes it' })
  expect(checks['encryption key']?.detail).toBe(
    `there is none yet; the next start makes it in ${join(directory, 'encryption.key')}`,
  )
  // No workflow would use it.
  expect(checks.browser).toMatchObject({
    status: 'warn',
    advice: 'Set it to the executable of a Chrome or Chromium.',
    detail: 'BROWSER_PATH is "/nowhere/chromium", which does not run (ENOENT)',
  })
  for (const { status, advice } of report.checks) expect(advice === null).toBe(status === 'ok')
  expect(readdirSync(place)).toEqual([])
})

test.for(['start', 'writeAndDie'])(
  'leaves every file of a store as it was, which its last process left by %s',
  async (last, test) => {
    const place = await newPlace(test)
    const left = await startStoreProcess(test, { kind: sqlite, command: last, places: [place] })
    const ended = once(left, 'exit')
    left.send('go')
    await ended
    const before = contents(place)
    expect(before.has(join(place, 'service.db-wal'))).toBe(last === 'writeAndDie')
    const { checks } = await examined({ ...serviceSettings({ DATA_DIR: place }), ...noBrowser })
    expect(checks.store?.status).toBe('ok')
    expect(contents(place)).toEqual(before)
  },
)

/** Every file, but for the memory that processes share: every reader marks there what it reads. */
function contents(place: string): Map<string, string> {
  const files = readFiles(place).map(([path, bytes]) => [path, bytes.toString('base64')] as const)
  return new Map(files.filter(([path]) => !path.endsWith('-shm')))
}

test('goes on after every failure, says what to do about each, and tells nothing secret', async (test) => {
  const settings = await everythingWrong(test)
  const { code, stdout, stderr } = await runCommand(['doctor'], settings.environment)
  expect([code, stderr]).toEqual([1, ''])
  const failed = stdout.split('\n').filter((line) => line.startsWith('fail'))
  expect(failed.map((line) => line.slice(6, 26).trim())).toEqual([
    'configuration',
    'store',
    'MANAGEMENT_PORT',
    'workflows',
  ])
  expect(failed[0]).toContain('LOG_LEVEL is "loud": set it to one of fatal, error, warn, info, debug, trace, silent.')
  expect(failed[0]).toContain('EXECUTION_PORT is "3001x". Set it to a whole number from 0 to 65535.')
  expect(stdout).toMatch(/^warn {2}EXECUTION_PORT {8}not checked: EXECUTION_PORT is refused\. Mend the config/m)
  expect(stdout).toMatch(/^warn {2}encryption key {8}not checked: ENCRYPTION_KEY is refused\. /m)
  expect(stdout).toMatch(/^warn {2}clock {17}not checked: the store does not open\. Mend the store first\.$/m)
  expect(stdout).toMatch(/^warn {2}browser {15}no browser answers at BROWSER_CDP_URL\. Start it, or /m)
  expect(stdout).toMatch(/^warn {2}isolation {13}not checked: the browser does not start\. /m)
  expect(stdout).toMatch(/\n\n4 failures and \d+ warnings among 19 checks\.\n$/)
  for (const secret of settings.secrets) expect(stdout).not.toContain(secret)
})

async function everythingWrong(test: TestContext): Promise<{ environment: Environment; secrets: string[] }> {
  const place = await newPlace(test)
  mkdirSync(join(place, 'service.db'))
  const other = createServer((_request, response) => void response.end('hello'))
  await new Promise((resolve) => other.listen(0, '127.0.0.1', () => resolve(undefined)))
  onTestFinished(() => void other.close())
  const secrets = [randomBytes(31).toString('base64'), randomBytes(12).toString('hex')]
  const environment = {
    ...serviceSettings({ DATA_DIR: place }),
    LOG_LEVEL: 'loud',
    EXECUTION_PORT: '3001x',
    MANAGEMENT_PORT: String((other.address() as AddressInfo).port),
    ENCRYPTION_KEY: secrets[0] ?? '',
    WORKFLOWS_DIR: await writeModules(test, {
      'visit.ts': moduleText('visit', 'browser: true, run: () => null'),
      'broken.ts': 'export default {',
    }),
    BROWSER_CDP_URL: `ws://127.0.0.1:1/${secrets[1]}`,
  }
  return { environment, secrets }
}
