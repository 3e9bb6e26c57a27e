/**
 * The packages that automations use most: installed from the registry into a temporary project, type-checked, deployed and
 * run by a worker. Writes the table of the guide: `vitest -u` replaces it.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAdministration } from '../../src/app.ts'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { readConfig } from '../../src/config/config.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { buildSnapshot } from '../../src/domain/deployments/build-snapshot.ts'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'
import { findBrowser } from '../../src/worker/browser/find-browser.ts'
import { type Installation, newInstallation } from '../support/installation.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const guide = pathOf('../../docs/guides/packages.md')
const run = promisify(execFile)

/** Directories of workflows, each of which is one deployment: all together exceed its limit. */
const directories = ['documents', 'services', 'systems']
const packageNames = Object.keys(JSON.parse(readFileSync(pathOf('packages/package.json'), 'utf8')).dependencies)

const project = temporaryDirectory()
let installation: Installation

beforeAll(async () => {
  await cp(pathOf('packages'), project, { recursive: true })
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-timeout=20000']
  await run('npm', ['ci', ...options, '--fetch-retries=1'], { cwd: project }).catch(({ stderr, message }) => {
    throw new Error(`The packages were not installed. Can npm reach its registry?\n${stderr || message}`)
  })
  const browser = await findBrowser(undefined, process.env)
  const variables = { BROWSER_PATH: browser.executable, ...browser.environment }
  const EXECUTOR_ENV = Object.keys(variables).join(',')
  installation = await newInstallation({ ...variables, EXECUTOR_ENV })
}, 600_000)
afterAll(async () => {
  await installation?.remove()
  removeDirectory(project)
})

// Installing, bundling and type-checking 500 packages takes two minutes of two cores.
test('each package type-checks, is deployed, and is used by a run', { timeout: 900_000 }, async () => {
  const rows = new Map<string, string>()
  const types = checkTypes()
  const { deployments, close } = await openAdministration(readConfig(installation.settings))
  const used: { id: string; apiKey: string }[] = []
  for (const name of directories) {
    const directory = join(project, name)
    const snapshot = await buildSnapshot(directory)
    const { id: accountId, key: apiKey } = await installation.createAccount()
    await deployments.deploy(snapshot, { accountId, by: operator, directory })
    for (const { id, title } of snapshot.workflows) {
      const packageName = packageNames.find((each) => each.split('/').at(-1) === id) ?? ''
      rows.set(
        packageName,
        `| \`${packageName}\` | ${versionOf(packageName)} | ${describe(snapshot, packageName)} | ${title} |`,
      )
      used.push({ id, apiKey })
    }
  }
  await close()
  expect([...rows.keys()].sort()).toEqual(packageNames)
  expect(await types).toBe('')

  const { executionUrl } = await installation.start()
  const failed: unknown[] = []
  for (const { id, apiKey } of used) {
    const client = createExecutionClient({ baseUrl: executionUrl, apiKey })
    const { status, error } = unwrap(await client.runs.queueAndWait(id, {}))
    if (status !== 'succeeded') failed.push({ id, status, error })
  }
  expect(failed).toEqual([])
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  const text = readFileSync(guide, 'utf8').replace(/(?<=^\| --- .*\n)(\| `.*\n)+/m, `${sorted.join('\n')}\n`)
  await expect(text).toMatchFileSnapshot(guide)
})

function versionOf(packageName: string): string {
  return JSON.parse(readFileSync(join(project, 'node_modules', packageName, 'package.json'), 'utf8')).version
}

/** How the package reaches the worker. */
function describe({ files, externals }: Snapshot, packageName: string): string {
  if (externals.includes(packageName)) return 'install it'
  return files.some(({ path }) => path.startsWith(`node_modules/${packageName}/`)) ? 'carried' : 'bundled'
}

/** Returns the compiler's output, which is empty on success. */
async function checkTypes(): Promise<string> {
  const compilerOptions = {
    ...{ target: 'es2024', module: 'nodenext', noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true },
    // Some of the packages have no types.
    ...{ allowJs: true, checkJs: true, strict: true, noImplicitAny: false, strictNullChecks: false },
    types: ['node'],
    typeRoots: [pathOf('../../node_modules/@types')],
    paths: { 'execution-service/workflow': [pathOf('../../src/domain/workflows/define-workflow.ts')] },
  }
  // Its four million lines of types take the compiler a minute.
  const configuration = { compilerOptions, include: directories, exclude: ['services/googleapis.mjs'] }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(configuration))
  const compiler = pathOf('../../node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [compiler, '-p', project]).catch((error) => error)
  return stdout
}
