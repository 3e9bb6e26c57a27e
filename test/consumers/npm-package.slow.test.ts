/**
 * The published package, as a new user meets it: an empty directory, an empty home, Node 20, npm and its registry. Makes a
 * project, starts it, queues a run, saves a workflow, and runs the project's tests.
 */
import { execFile, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { packPackage } from '../../src/commands/project/workflow-package.ts'
import { buildServicePackage, entries } from '../../src/tools/generate/service-package.ts'
import { type RegistryProxy, startRegistryProxy, type Transfer } from '../support/registry-proxy.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const directory = temporaryDirectory()
const project = join(directory, 'shop')
const built = join(directory, 'built')
const packs = join(directory, 'packs')

/** Of the machine, such as certificates for the registry, without what npm, Vitest and tests before this one have set. */
const ofMachine = Object.entries(process.env).filter(([name]) =>
  /^(?:(?:https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:DIR|FILE))$/i.test(name),
)

/** The oldest version that the package runs on. */
const oldNode = `node-linux-${process.arch}@20.20.2`
const old = join(directory, 'old')

/** With the npm of the machine. */
const environment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(ofMachine),
  HOME: join(directory, 'home'),
  PATH: [
    join(old, 'node_modules/.bin'),
    dirname(process.env.npm_node_execpath ?? process.execPath),
    '/usr/bin',
    '/bin',
  ].join(':'),
  NO_COLOR: '1',
  // npm would fetch its own metadata, 3 MB, once a day.
  npm_config_update_notifier: 'false',
  EXECUTION_PORT: '0',
  BROWSER_CONTEXT_PORT: '0',
  DASHBOARD_PORT: '0',
  MANAGEMENT_PORT: '0',
}

const run = promisify(execFile)
const inProject = (command: string, ...args: string[]) =>
  run(command, args, { cwd: project, env: environment, maxBuffer: 16 * 1024 * 1024 })

let registry: RegistryProxy
let packageFile: string
/** What npm has fetched until the project was there. */
let transfers: Transfer[]

beforeAll(async () => {
  for (const each of [environment.HOME ?? '', packs, old]) mkdirSync(each)
  registry = await startRegistryProxy()
  await run('npm', ['install', '--prefix', old, '--no-audit', '--no-fund', oldNode], { cwd: old })
  expect((await run('node', ['--version'], { env: environment })).stdout).toMatch(/^v20\./)
  await buildServicePackage(built)
  packageFile = await packPackage(built, packs)
  environment.npm_config_registry = registry.url
  const init = ['--yes', `./packs/${packageFile}`, 'init', 'shop']
  const { stdout } = await run('npx', init, { cwd: directory, env: environment })
  expect(stdout).toContain('cd shop\n  npm start\n')
  transfers = registry.takeTransfers()
  // Rendering the reference takes most of it, and npm downloads 71 MB, and Node 20.
}, 600_000)
afterAll(() => {
  registry.close()
  removeDirectory(directory)
})

const isPackage = ({ path }: Transfer) => path.endsWith('.tgz')

test('npm fetches each file once, and none of a package that is in the package', () => {
  const packages = transfers.filter(isPackage).map(({ path }) => path)
  expect(packages.filter((path) => /\/node-linux-/.test(path))).toHaveLength(1)
  expect(packages.toSorted()).toEqual([...new Set(packages)].toSorted())
  const { bundleDependencies } = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'))
  expect(bundleDependencies).toEqual(expect.arrayContaining(['express', 'pg', 'playwright-core']))
  const names = transfers.map(({ path }) => path.slice(1).replace(/\/-\/.*/, ''))
  expect(bundleDependencies.filter((name: string) => names.includes(name))).toEqual([])
})

test('the docs state what each step downloads, within 10 %, and that it takes less than a minute at 50 Mbit/s', () => {
  const text = readFileSync(join(root, 'docs/package.md'), 'utf8')
  const rows = [...text.matchAll(/^\| (.+?) \| (?:up to )?([\d.]+) MB \| ([\d.]+) s \|$/gm)].map((row) => {
    const [, step = '', megabytes, seconds] = row
    return { step, megabytes: Number(megabytes), seconds: Number(seconds) }
  })
  const ofProject = /^\/(?:typescript|@types\/node|undici-types)\//
  const ofNode = /^\/node-linux-/
  const fetched = (isOfStep: (path: string) => boolean) =>
    transfers.filter((each) => isPackage(each) && isOfStep(each.path)).reduce((sum, { bytes }) => sum + bytes, 0) / 1e6
  const measured = [
    statSync(join(packs, packageFile)).size / 1e6,
    fetched((path) => !ofProject.test(path) && !ofNode.test(path)),
    undefined,
    fetched((path) => ofProject.test(path)),
    fetched((path) => ofNode.test(path)),
  ]
  const total = rows.at(-1)
  expect(rows.slice(0, -1)).toHaveLength(measured.length)
  for (const [index, megabytes] of measured.entries()) {
    if (megabytes === undefined) continue
    const { step = '', megabytes: stated = 0 } = rows[index] ?? {}
    expect(megabytes / stated, `${step}: ${megabytes} MB`).toBeGreaterThan(0.9)
    expect(megabytes / stated, `${step}: ${megabytes} MB`).toBeLessThan(1.1)
  }
  // It grows with each version that is published.
  const metadata = transfers.filter((each) => !isPackage(each)).reduce((sum, { bytes }) => sum + bytes, 0) / 1e6
  expect(metadata).toBeLessThan(rows[2]?.megabytes ?? 0)
  for (const { step, megabytes, seconds } of rows) expect(seconds, step).toBeCloseTo((megabytes * 8) / 50, 1)
  expect(total?.megabytes).toBeCloseTo(
    rows.slice(0, -1).reduce((sum, { megabytes }) => sum + megabytes, 0),
    1,
  )
})

test('the package has no TypeScript of the service, no source map, and a manifest that can be published', () => {
  const all = readdirSync(built, { recursive: true, encoding: 'utf8' })
  const files = all.filter((file) => !file.startsWith('node_modules'))
  const sources = files.filter((file) => /(?<!\.d)\.ts$/.test(file))
  expect(sources.filter((file) => !/^(docs\/samples|examples|src\/commands\/project\/template)\//.test(file))).toEqual(
    [],
  )
  expect(all.filter((file) => file.endsWith('.map'))).toEqual([])
  const read = (file: string) => readFileSync(join(built, file), 'utf8')
  const compiled = files.filter((file) => file.endsWith('.js'))
  expect(compiled.filter((file) => /^\/\/# sourceMappingURL/m.test(read(file)))).toEqual([])
  const manifest = JSON.parse(read('package.json'))
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect(manifest).not.toHaveProperty('private')
  expect([manifest.version, manifest.license, manifest.engines, manifest.dependencies]).toEqual([
    own.version,
    own.license,
    own.engines,
    own.dependencies,
  ])
  expect(files).toEqual(
    expect.arrayContaining([
      ...['LICENSE', 'README.md', 'CHANGELOG.md', manifest.bin['execution-service']],
      ...['deploy/helm/Chart.yaml', 'deploy/systemd/execution-service.service'],
    ]),
  )
  // npm refuses provenance without the address of a repository, which only its publisher knows.
  expect(manifest.publishConfig).toEqual({ access: 'public' })
})

test('the package has the licences of the code that it contains', () => {
  const notices = readFileSync(join(built, 'THIRD-PARTY-NOTICES.md'), 'utf8')
  for (const text of ['Redocly', 'Permission is hereby granted, free of charge', 'react-dom', 'styled-components'])
    expect(notices).toContain(text)
  const { redoc } = JSON.parse(String(gunzipSync(readFileSync(join(built, 'docs/reference.json.gz')))))
  const named = [...redoc.matchAll(/@license (\w+)/g)].map(([, name]) => name)
  expect(named.length).toBeGreaterThan(3)
  for (const name of named) expect(notices).toContain(`@license ${name}`)
})

test('the package contains every file that its modules import', async () => {
  const isModule = (file: string) =>
    existsSync(join(root, file.replace(/\.js$/, '.ts'))) && !entries.includes(file.replace(/\.js$/, '.ts'))
  const source = join(project, 'node_modules/execution-service')
  const modules = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^src\/.*\.js$/.test(file) && isModule(file))
    .map((file) => join(source, file))
  expect(modules.length).toBeGreaterThan(300)
  const script = join(directory, 'import-all.mjs')
  writeFileSync(script, `for (const each of ${JSON.stringify(modules)}) await import(each)\nprocess.exit()\n`)
  expect(await inProject(join(project, 'node_modules/.bin/node'), script)).toEqual({ stdout: '', stderr: '' })
})

/** `npm start`, until the end of the test. */
function startService() {
  const service = spawn('npm', ['start'], {
    cwd: project,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const lines: string[] = []
  const printed = new EventEmitter()
  const add = (line: string) => printed.emit('line', lines.push(line))
  for (const stream of [service.stdout, service.stderr]) createInterface(stream).on('line', add)
  const closed = once(service, 'close').then(() => add('The service has ended.'))
  onTestFinished(async ({ task }) => {
    if (service.exitCode === null) process.kill(-(service.pid ?? 0), 'SIGTERM')
    // It writes to its compile cache until then.
    await closed
    if (task.result?.state === 'fail') process.stderr.write(`${lines.join('\n')}\n`)
  })
  return {
    /** Returns the first such line. Waits as long as the test may take, unless the service cannot print it any more. */
    async untilPrinted(pattern: RegExp): Promise<string> {
      for (;;) {
        const line = lines.find((each) => pattern.test(each))
        if (line !== undefined) return line
        expect(lines.filter((each) => /^(Not deployed|The service has ended)/.test(each))).toEqual([])
        await once(printed, 'line')
      }
    },
  }
}

test('`npm start` serves the project and deploys what is saved; `npm test` passes', { timeout: 600_000 }, async () => {
  const { untilPrinted } = startService()
  await untilPrinted(/^ {2}http:\/\/127\.0\.0\.1:\d+\/links\//)
  const ready = await untilPrinted(/"msg":"service ready"/)
  const { execution: baseUrl, dashboard } = JSON.parse(ready)

  const { stdout } = await inProject('npx', 'execution-service', 'keys', 'create', '--name', 'ci', '--json')
  const client = createExecutionClient({ baseUrl, apiKey: JSON.parse(stdout).value })
  const greet = async () => unwrap(await client.runs.queueAndWait('greet', { name: 'Ada' })).output
  expect(await greet()).toEqual({ text: 'Hello, Ada!', characters: 11 })

  const file = join(project, 'workflows/greet.ts')
  const before = readFileSync(file, 'utf8')
  writeFileSync(file, before.replace("default: 'Hello'", "default: 'Welcome'"))
  await untilPrinted(/^Deployed /)
  expect(await greet()).toEqual({ text: 'Welcome, Ada!', characters: 13 })
  writeFileSync(file, before)

  // The reference was rendered when the package was built, and shows the addresses of this service.
  const reference = await (await fetch(`${dashboard}/docs/execution-runs.html`)).text()
  expect(reference).toContain(baseUrl)
  expect(reference).not.toMatch(/https?:\/\/[\w-]+\.invalid/)
  expect(reference).toContain('hydrate')

  const signIn = await (await fetch(`${dashboard}/sign-in`)).text()
  expect(signIn).toContain('<code>npx execution-service users sign-in-link --email EMAIL</code>')

  const tests = await inProject('npm', 'test')
  expect(tests.stdout).toMatch(/pass 5\b/)
  expect(await inProject('npm', 'run', '--silent', 'types')).toEqual({ stdout: '', stderr: '' })
})

test('the mock says which package it needs', async () => {
  const failed = await inProject('npx', 'execution-service', 'mock').catch((error) => error)
  expect(failed.stderr).toContain(
    'The mock needs @stoplight/prism-cli, which is not installed: run `npm install --save-dev @stoplight/prism-cli`.',
  )
})

/** Of files of the installation that npm has downloaded, without the Node of the package `node-linux-…`. */
test('an installation is as small as the docs say, within 10 %', async () => {
  const { stdout } = await run('du', ['-sk', '--exclude=node-linux-*', '--exclude=typescript', 'node_modules'], {
    cwd: project,
  })
  const megabytes = Number.parseInt(stdout, 10) / 1024
  const stated = Number(
    /^\| service and worker \| .*\| ([\d.]+) MB \|$/m.exec(
      readFileSync(join(root, 'docs/guides/your-own-project.md'), 'utf8'),
    )?.[1],
  )
  expect(megabytes, `it takes ${megabytes.toFixed(0)} MB`).toBeLessThan(200)
  expect(megabytes / stated, `it takes ${megabytes.toFixed(0)} MB`).toBeGreaterThan(0.9)
  expect(megabytes / stated, `it takes ${megabytes.toFixed(0)} MB`).toBeLessThan(1.1)
})
