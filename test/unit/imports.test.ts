/** The house rule of imports: in one direction, and what was generated from the documents is seen where it is meant to be. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** A room is a file or folder directly in src; it may import from those that stand below it here. */
const rooms = [
  'dev',
  'demo',
  'guard',
  'generate',
  'mock',
  'client',
  'main.ts',
  'command-line',
  'app.ts',
  'ports.ts',
  'sealed-columns.ts',
  'execution-api.ts',
  'browser-context-api.ts',
  'dashboard',
  'management',
  'worker',
  'browser',
  'runs',
  'browser-contexts',
  'workflows',
  'accounts',
  'api-keys',
  'audit-log',
  'installation.ts',
  'log.ts',
  'config.ts',
  'roles.ts',
  'tracing',
  'docs',
  'documents.ts',
  'names.ts',
  'contract',
  'storage',
]

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)

interface Import {
  /** Below src. */
  file: string
  /** Below the repository's root; a package's name as it is. */
  target: string
}

const importPattern = /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm

const imports: Import[] = files.flatMap((file) => {
  const path = join(root, 'src', file)
  const found = [...readFileSync(path, 'utf8').matchAll(importPattern)]
  const specifiers = found.map(([, from, whole, dynamic]) => from ?? whole ?? dynamic ?? '')
  return specifiers.map((specifier) => ({
    file,
    target: specifier.startsWith('.') ? relative(root, join(dirname(path), specifier)) : specifier,
  }))
})

/** The room of a file below src. */
function roomOf(file: string): string {
  return file.split('/')[0] ?? file
}

const within = imports
  .filter(({ target }) => target.startsWith('src/'))
  .map(({ file, target }) => ({ file, from: roomOf(file), to: roomOf(target.slice('src/'.length)) }))
  .filter(({ from, to }) => from !== to)

function described(broken: readonly { file: string; to?: string; target?: string }[]): string[] {
  return broken.map(({ file, to, target }) => `src/${file} imports ${to ?? target}`)
}

test('the imports are found', () => {
  expect(files.length).toBeGreaterThan(50)
  expect(within).toContainEqual({ file: 'app.ts', from: 'app.ts', to: 'runs' })
  expect(within).toContainEqual({ file: 'main.ts', from: 'main.ts', to: 'command-line' })
  expect(imports).toContainEqual({ file: 'storage/store.ts', target: 'kysely' })
})

test('every room has its place in the order: add a new one to this list, above what it imports', () => {
  expect(rooms).toEqual(expect.arrayContaining([...new Set(files.map(roomOf))]))
})

test('imports go in one direction, from main over app and surfaces to the domain and its storage', () => {
  const upwards = within.filter(({ from, to }) => rooms.indexOf(to) <= rooms.indexOf(from))
  expect(described(upwards)).toEqual([])
})

test('the machinery of contracts and the storage know nothing of the rest', () => {
  expect(described(within.filter(({ from }) => from === 'contract' || from === 'storage'))).toEqual([])
})

test('the configuration knows nothing of the domain', () => {
  expect(described(within.filter(({ from, to }) => from === 'config.ts' && to !== 'storage'))).toEqual([])
})

test('the service starts no demo and no mock, generates nothing and guards nothing', () => {
  const tools = ['dev', 'demo', 'mock', 'generate', 'guard']
  expect(described(within.filter(({ from, to }) => tools.includes(to) && !tools.includes(from)))).toEqual([])
})

test('only operations.ts files and the surfaces see what the documents make of the server', () => {
  const seers = /^(execution-api|browser-context-api)\.ts$|^(?!contract\/)[^/]+\/operations\.ts$/
  const generated = imports.filter(({ target }) => target.startsWith('generated/'))
  expect(generated.some(({ file }) => file === 'runs/operations.ts')).toBe(true)
  // The demo is a caller like any other, and the client is what callers have: nothing of the server.
  const callers = /^(demo|client)\//
  const wrong = generated.filter(({ file, target }) => {
    return callers.test(file) ? target.endsWith('/server.ts') : !seers.test(file) || target.endsWith('/client.ts')
  })
  expect(described(wrong)).toEqual([])
})

test('the published client brings nothing with it but openapi-fetch and what the documents make for callers', () => {
  const ofClient = imports.filter(({ file }) => file.startsWith('client/'))
  expect(ofClient).toContainEqual({ file: 'client/index.ts', target: 'generated/execution.v1/client.ts' })
  const own = /^(openapi-fetch|src\/client\/.+|generated\/[^/]+\/(client|types)\.ts)$/
  expect(described(ofClient.filter(({ target }) => !own.test(target)))).toEqual([])
})

test('SQL is written in storage and in the domain alone', () => {
  const databases = imports.filter(({ target }) => target === 'kysely' || target === 'node:sqlite')
  // SQLite there is a lock on a file, and stores nothing.
  const others = databases.filter(({ file }) => !file.startsWith('storage/') && file !== 'browser/file-lock.ts')
  expect(described(others)).toEqual([])
})

test('what an author of a workflow imports brings no code of the service with it', () => {
  const ofAuthors = imports.filter(({ file }) => file === 'workflows/define.ts').map(({ target }) => target)
  expect(ofAuthors).toEqual(['playwright-core', 'typebox'])
})
