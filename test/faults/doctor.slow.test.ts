/** `doctor` on a healthy installation, a broken one, and before the first start. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { readFiles } from '../support/canaries.ts'
import { newDirectory } from '../support/domain.ts'
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

/** Runs `doctor --json`, and returns its checks by name. */
async function runDoctor(settings: Environment) {
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

test('doctor finds no failure in a running service, and prints a line for each check', async (test) => {
  // Output of a module is not part of the report.
  const text = `console.log('loading')\n${moduleText('visit', 'browser: true, run: () => null')}`
  const modules = { WORKFLOWS_DIR: await writeModules(test, { 'visit.ts': text }) }
  const installation = await newInstallation({ ...(await freePorts()), ...modules, ...browserSettings() })
  onTestFinished(installation.remove)
  const service = await installation.start()
  const { code, stdout } = await installation.runCommand('doctor')
  expect(stdout).not.toMatch(/^fail/m)
  expect(code).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  const malformed = lines.slice(0, -2).filter((line) => !/^(ok {2}|warn) {2}\S.{19} {2}\S/.test(line))
  expect(malformed).toEqual([])
  expect(stdout).not.toContain('\u001b')
  const lineByCheck = Object.fromEntries(lines.map((line) => [line.slice(6, 26).trim(), line.slice(28)]))
  expect(lineByCheck).toMatchObject({
    store: `${join(installation.dataDirectory, 'service.db')} is intact and has this version's schema`,
    durability: 'journal_mode is WAL, synchronous is FULL',
    EXECUTION_PORT: `127.0.0.1:${new URL(service.executionUrl).port} is in use by the running service`,
    service: `running and ready (${service.managementUrl}/readyz)`,
    workers: expect.stringMatching(/^1 worker on .+, with 4 slots$/),
    workflows: `1 workflow in ${modules.WORKFLOWS_DIR}, 1 with a browser`,
    browser: expect.stringMatching(/, version \d+\..*, opens a page in \d+\.\d s/),
    isolation: 'browser contexts do not see data of each other',
  })
})

function browserSettings(): Environment {
  const { BROWSER_PATH } = process.env
  return BROWSER_PATH ? { BROWSER_PATH } : {}
}

test('before the first start, doctor reports what it will create and creates nothing', async (test) => {
  const parent = await newDirectory(test)
  const directory = join(parent, 'not', 'yet')
  const WORKFLOWS_DIR = await writeModules(test, { 'a.mjs': moduleText('a') })
  const { code, stderr, report, checks } = await runDoctor({
    ...serviceSettings({ DATA_DIR: directory }),
    WORKFLOWS_DIR,
    ...noBrowser,
  })
  expect([code, stderr, report.ok, report.version]).toEqual([0, '', true, expect.stringMatching(/^\d+\.\d+\.\d+/)])
  expect(checks['data directory']?.detail).toBe(
    `${directory} does not exist yet; the first start creates it, with the store and its encryption key`,
  )
  expect(checks.store).toMatchObject({ status: 'ok', detail: 'none yet; the first start creates it' })
  expect(checks['encryption key']?.detail).toBe(
    `none yet; the next start creates it in ${join(directory, 'encryption.key')}`,
  )
  // A warning, because no workflow uses a browser.
  expect(checks.browser).toMatchObject({
    status: 'warn',
    advice: 'Set it to the executable of Chrome or Chromium.',
    detail: 'BROWSER_PATH is "/nowhere/chromium", which does not run (ENOENT)',
  })
  for (const { status, advice } of report.checks) expect(advice === null).toBe(status === 'ok')
  expect(readdirSync(parent)).toEqual([])
})

test.for(['start', 'writeAndDie'])(
  'doctor changes no file of a store that its last process closed by %s',
  async (last, test) => {
    const directory = await newDirectory(test)
    const child = await startStoreProcess(test, { kind: sqlite, command: last, locations: [directory] })
    const ended = once(child, 'exit')
    child.send('go')
    await ended
    const before = contents(directory)
    expect(before.has(join(directory, 'service.db-wal'))).toBe(last === 'writeAndDie')
    const { checks } = await runDoctor({ ...serviceSettings({ DATA_DIR: directory }), ...noBrowser })
    expect(checks.store?.status).toBe('ok')
    expect(contents(directory)).toEqual(before)
  },
)

/** Every file except the shared-memory index, which readers change. */
function contents(directory: string): Map<string, string> {
  const files = readFiles(directory).map(([path, bytes]) => [path, bytes.toString('base64')] as const)
  return new Map(files.filter(([path]) => !path.endsWith('-shm')))
}

test('doctor continues after failures, gives advice for each, and prints no secret', async (test) => {
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
  expect(stdout).toMatch(/^warn {2}EXECUTION_PORT {8}not checked: EXECUTION_PORT is invalid\. Fix the config/m)
  expect(stdout).toMatch(/^warn {2}encryption key {8}not checked: ENCRYPTION_KEY is invalid\. /m)
  expect(stdout).toMatch(/^warn {2}clock {17}not checked: the store cannot be opened\. Fix the store first\.$/m)
  expect(stdout).toMatch(/^warn {2}browser {15}no browser replies at BROWSER_CDP_URL\. Start it, set /m)
  expect(stdout).toMatch(/^warn {2}isolation {13}not checked: the browser does not start\. /m)
  expect(stdout).toMatch(/\n\n4 failures and \d+ warnings in 25 checks\.\n$/)
  for (const secret of settings.secrets) expect(stdout).not.toContain(secret)
})

async function everythingWrong(test: TestContext): Promise<{ environment: Environment; secrets: string[] }> {
  const directory = await newDirectory(test)
  mkdirSync(join(directory, 'service.db'))
  const other = createServer((_request, response) => void response.end('hello'))
  await new Promise((resolve) => other.listen(0, '127.0.0.1', () => resolve(undefined)))
  onTestFinished(() => void other.close())
  const secrets = [randomBytes(31).toString('base64'), randomBytes(12).toString('hex')]
  const environment = {
    ...serviceSettings({ DATA_DIR: directory }),
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
