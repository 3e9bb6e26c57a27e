/** The Dockerfile and compose.yaml match the code: files, packages, settings, ports and commands. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { readConfig, settings } from '../../src/config/config.ts'
import { listen } from '../../src/contract/listener.ts'
import { managementApp } from '../../src/surfaces/management/management.ts'
import { readRoles, roles } from '../../src/surfaces/roles.ts'
import { copied, entries } from '../../src/tools/generate/service-package.ts'
import { isInBuildContext, isWithin, readStages } from '../support/dockerfile.ts'

interface Container {
  image: string
  build?: string
  pull_policy?: string
  command?: string[]
  environment: Record<string, string>
  ports?: string[]
  volumes?: string[]
  tmpfs?: string[]
  stop_grace_period: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: object
  [member: string]: unknown
}

const compose: { name: string; services: Record<string, Container> } = parse(readFileSync('compose.yaml', 'utf8'), {
  merge: true,
})
const ownServices = Object.entries(compose.services).filter(([, { image }]) => image === compose.name)

const stages = readStages()
/** Of the image's stage, which the last one repeats. */
const instructions = stages.find(({ name }) => name === 'service')?.instructions ?? []
const all = (keyword: string) => instructions.filter((each) => each.keyword === keyword).map(({ rest }) => rest)
const variables = Object.fromEntries(
  all('ENV')
    .flatMap((rest) => rest.split(' '))
    .map((pair) => pair.split('=') as [string, string]),
)
/** Modules are compiled from their entries, with all that they import; of directories, the package has a part. */
const isInImage = (file: string) =>
  isInBuildContext(file) &&
  (file.endsWith('.ts') ||
    copied.some((path) => isWithin(file, path)) ||
    [...copied, ...entries].some((path) => isWithin(path, file)))

const importOfTypes = /^import type [^'"]*?\bfrom '[^']+'/gm
const commentPattern = /^ *\/\*\*[\s\S]*?\*\//gm
const importPattern = /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm
const filePattern = /new URL\(\s*['`]([^'`$]+)[^'`]*['`],\s*import\.meta\.url\)/g
const packagePattern = /(?:import\.meta\.resolve|ofPackage)\(\s*'([^']+)'/g

/** All files and packages that the module needs, directly or through imports and child processes. */
function findDependencies(module: string) {
  const files = new Set<string>()
  const packages = new Set<string>()
  const visit = (file: string): void => {
    if (files.has(file)) return
    files.add(file)
    if (!file.endsWith('.ts')) return
    const text = readFileSync(file, 'utf8').replaceAll(importOfTypes, '').replaceAll(commentPattern, '')
    const matchesOf = (pattern: RegExp) =>
      [...text.matchAll(pattern)].map((match) => match.slice(1).find(Boolean) ?? '')
    for (const specifier of [...matchesOf(importPattern), ...matchesOf(packagePattern)]) {
      if (specifier.startsWith('.')) visit(normalize(join(dirname(file), specifier)))
      else if (!specifier.startsWith('node:')) packages.add(/^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
    }
    for (const path of matchesOf(filePattern)) {
      const target = normalize(join(dirname(file), path)).replace(/\/$/, '')
      // The extension is that of the importing module, which is compiled in the published package.
      visit(existsSync(`${target}.ts`) ? `${target}.ts` : target)
    }
  }
  visit(module)
  return { files: [...files], packages: [...packages] }
}

test('everything that the package is built from is in the build context', () => {
  const needed = [
    ...copied,
    ...entries,
    'src/tools/generate/service-package.ts',
    'docs/package.md',
    'package-lock.json',
  ]
  expect(needed.filter((path) => !existsSync(path) || !isInBuildContext(path))).toEqual([])
  expect(stages.map(({ name }) => name)).toEqual(['package', 'dependencies', 'service', 'browser', undefined])
  expect(stages.at(-1)).toEqual({ base: 'service', name: undefined, instructions: [] })
})

test('the image contains every file and package that the service needs', () => {
  const { files, packages } = findDependencies('src/main.ts')
  expect(files).toEqual(
    expect.arrayContaining(['src/worker/executors/executor.ts', 'src/surfaces/docs/site.ts', 'docs/guides']),
  )
  // Written if possible, but not needed.
  const written = [
    'node_modules/.cache/node',
    'node_modules/.cache/chromium',
    'node_modules/.cache/reference',
    'dist/docs',
    '.',
  ]
  // Written when the package is built; Prism is not part of the image.
  const others = ['docs/reference.json.gz', 'package.json', 'node_modules/.bin/prism']
  const isNeeded = (file: string) => !written.includes(file) && !others.includes(file)
  const missing = files.filter((file) => !isInImage(file) && isNeeded(file))
  expect(missing).toEqual([])
  expect(packages).toEqual(expect.arrayContaining(['express', 'pg', 'playwright-core']))
  // Compiles the package for projects; the image has no development dependencies, and the command says so there.
  // The image has the reference, so that it needs no Redocly, and its browser is in a directory of its cache.
  const optional = ['typescript', '@redocly/cli', '@sparticuz/chromium', '@stoplight/prism-cli']
  const declared = [...Object.keys(packageJson.dependencies), ...optional]
  expect(packages.filter((name) => !declared.includes(name))).toEqual([])
})

test('the build context contains no secrets and no tests', () => {
  for (const path of [
    '.env',
    'settings.env',
    'secrets/token',
    'data/encryption.key',
    '.git/config',
    'node_modules/pg/package.json',
    'test/README.md',
  ]) {
    expect(isInBuildContext(path), path).toBe(false)
  }
  expect(readFileSync('.gitignore', 'utf8').split('\n')).toContain('.env')
})

test('the containers set existing variables to valid values', () => {
  // XDG_CACHE_HOME is where the browser is found.
  const others = ['NODE_ENV', 'NODE_COMPILE_CACHE', 'XDG_CACHE_HOME']
  const findUnknown = (names: string[]) => names.filter((name) => !(name in settings) && !others.includes(name))
  expect(findUnknown(Object.keys(variables))).toEqual([])
  for (const [name, { environment }] of ownServices) {
    expect(findUnknown(Object.keys(environment)), name).toEqual([])
    const { config } = readComposeConfig(environment)
    expect(config.DATABASE_URL).toContain('@postgres/')
  }
})

/** The configuration after Compose's interpolation, with the required variables in .env. */
function readComposeConfig(environment: Record<string, string>) {
  const env: Record<string, string> = {
    POSTGRES_PASSWORD: 'c0ffee',
    ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
  }
  const filled = Object.entries(environment).map(([name, text]) => {
    return [
      name,
      text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, key, how, rest) => env[key] ?? (how === '-' ? rest : '')),
    ]
  })
  return { config: readConfig({ ...variables, ...Object.fromEntries(filled) }) }
}

test('the ports are the defaults, and the management port is not published', () => {
  const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT'] as const
  const ports = names.map((name) => settings[name].default)
  expect(all('EXPOSE').flatMap((rest) => rest.split(' '))).toEqual(ports)
  const published = ownServices.flatMap(([, container]) => container.ports ?? [])
  expect(published).toEqual(ports.slice(0, 3).map((port) => `127.0.0.1:${port}:${port}`))
})

test('the commands exist and cover every role', () => {
  const [entry] = all('ENTRYPOINT').map((rest) => JSON.parse(rest))
  expect(entry).toEqual(['execution-service'])
  expect(all('RUN').join()).toContain('/app/src/commands/launcher.js /usr/local/bin/execution-service')
  expect(all('CMD').map((rest) => JSON.parse(rest))).toEqual([['start']])
  const covered = ownServices.flatMap(([, { command = [] }]) => {
    expect(command.slice(0, 2)).toEqual(['start', '--only'])
    return [...readRoles(command.slice(2))]
  })
  expect(covered.sort()).toEqual([...roles].sort())
})

test('the health check passes only while the service is ready', async () => {
  const [check = ''] = all('HEALTHCHECK')
  const [node, ...args]: string[] = JSON.parse(check.slice(check.indexOf('[')))
  expect(node).toBe('node')
  let isReady = true
  const ready = async () => {
    if (!isReady) throw new Error('not ready')
  }
  const listener = await listen(managementApp({ metrics: async () => '', ready }), {
    host: '127.0.0.1',
    port: 0,
    name: 'PORT',
  })
  const env = { ...process.env, MANAGEMENT_PORT: new URL(listener.url).port }
  const code = async () => (await once(spawn(process.execPath, args, { env }), 'exit'))[0]
  expect(await code()).toBe(0)
  isReady = false
  expect(await code()).toBe(1)
  await listener.stop(0)
  expect(await code()).toBe(1)
  expect(check, 'the default port without the variable').toContain(settings.MANAGEMENT_PORT.default)
})

test('one service builds the image for all, without a registry', () => {
  // Compose builds concurrently. With the containerd image store, the second build of a name fails.
  const builders = Object.values(compose.services).filter(({ build }) => build !== undefined)
  expect(builders).toMatchObject([{ image: compose.name }])
  expect(ownServices.length).toBeGreaterThan(1)
  for (const [name, container] of ownServices) expect(container.pull_policy, name).toBe('never')
})

test('containers have more time to stop than the service needs', () => {
  for (const [name, container] of ownServices) {
    const { config } = readComposeConfig(container.environment)
    const seconds = Number(/^(\d+)s$/.exec(container.stop_grace_period)?.[1])
    expect(seconds, name).toBeGreaterThan(config.DRAIN_SECONDS + config.SHUTDOWN_SECONDS + config.ABORT_GRACE_SECONDS)
  }
  expect(all('STOPSIGNAL')).toEqual(['SIGTERM'])
})

const secretsVolume = '${SECRETS:-./secrets}:/run/secrets:ro'

test('every setting can be set in a file, apart from those that Compose itself decides', () => {
  const comment = readFileSync('compose.yaml', 'utf8').split('\nname:')[0] ?? ''
  const samples = [...comment.matchAll(/^# {3}([A-Z_]+)=(\S+)$/gm)].map(([, name = '', value]) => [name, value])
  for (const [, { env_file, environment, ports = [] }] of ownServices) {
    expect(env_file).toEqual([{ path: 'settings.env', required: false }])
    expect(Object.keys(environment)).toEqual(['DATABASE_URL', 'ENCRYPTION_KEY', 'LIVE_VIEW_ADDRESS'])
    expect(ports.length === 0 || ports.every((port) => port.startsWith('127.0.0.1:'))).toBe(true)
  }
  expect(samples.map(([name]) => name)).toEqual(['DASHBOARD_URL', 'SECRETS_DIR'])
  expect(readConfig(Object.fromEntries(samples))).toMatchObject({ SECRETS_DIR: '/run/secrets/workflows' })
  expect(readFileSync('.gitignore', 'utf8').split('\n')).toEqual(expect.arrayContaining(['settings.env', '/secrets/']))
})

test('containers run without privileges and can write only to /tmp', () => {
  expect(all('USER')).toEqual(['1000:1000'])
  expect(variables.NODE_COMPILE_CACHE).toMatch(/^\/tmp\//)
  for (const [name, container] of ownServices) {
    expect(container, name).toMatchObject({
      read_only: true,
      init: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      depends_on: { postgres: { condition: 'service_healthy' } },
    })
    expect(container.tmpfs?.join()).toMatch(/^\/tmp:exec,/)
    expect(container.volumes).toEqual([expect.stringMatching(`:${variables.WORKFLOWS_DIR}:ro$`), secretsVolume])
  }
  expect(compose.services.postgres?.healthcheck).toBeDefined()
})
