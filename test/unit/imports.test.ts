/** Holds the layout of `src/`: imports go one way, and each module sees only what it may see. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** The entries of `src/`, from the top down: each may import only from entries after it. */
const order = [
  'tools',
  'main.ts',
  'commands',
  'check',
  'simulator',
  'app.ts',
  'surfaces',
  'worker',
  // A worker outside of the service calls it as any other caller does.
  'client',
  'maintenance',
  'domain',
  'telemetry',
  'config',
  'storage',
  'contract',
  'openapi',
]

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)

interface Import {
  /** Relative to `src/`. */
  file: string
  /** Relative to the repository's root; a package's name is unchanged. */
  target: string
}

const importPattern = /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm

const imports: Import[] = files.flatMap((file) => {
  const path = join(root, 'src', file)
  const matches = [...readFileSync(path, 'utf8').matchAll(importPattern)]
  const specifiers = matches.map(([, from, whole, dynamic]) => from ?? whole ?? dynamic ?? '')
  return specifiers.map((specifier) => ({
    file,
    target: specifier.startsWith('.') ? relative(root, join(dirname(path), specifier)) : specifier,
  }))
})

/** The entry of `src/` that holds a file. */
function moduleOf(file: string): string {
  return file.split('/')[0] ?? file
}

const betweenModules = imports
  // What a code generator writes as text resolves to no file here.
  .filter(({ target }) => target.startsWith('src/') && existsSync(join(root, target)))
  .map(({ file, target }) => ({ file, target, from: moduleOf(file), to: moduleOf(target.slice('src/'.length)) }))
  .filter(({ from, to }) => from !== to)

function described(broken: readonly { file: string; target: string }[]): string[] {
  return broken.map(({ file, target }) => `src/${file} imports ${target}`)
}

test('imports of files and packages are recognised', () => {
  expect(files.length).toBeGreaterThan(50)
  expect(imports).toContainEqual({ file: 'app.ts', target: 'src/domain/create-domain.ts' })
  expect(imports).toContainEqual({ file: 'main.ts', target: 'src/commands/start.ts' })
  expect(imports).toContainEqual({ file: 'storage/store.ts', target: 'kysely' })
})

test('src/ has at most 16 entries, and each has a position in the order', () => {
  expect([...order].sort()).toEqual(readdirSync(join(root, 'src')).sort())
  expect(order.length).toBeLessThanOrEqual(16)
})

test('imports go one way: main → app → surfaces, worker, maintenance → domain → storage', () => {
  const upwards = betweenModules.filter(({ from, to }) => order.indexOf(to) <= order.indexOf(from))
  expect(described(upwards)).toEqual([])
})

test('contract/ imports only openapi/, and storage/ imports no other module', () => {
  const violations = betweenModules.filter(
    ({ from, to }) => (from === 'contract' && to !== 'openapi') || from === 'storage',
  )
  expect(described(violations)).toEqual([])
})

test('stores and domain objects are constructed in one place each', () => {
  const constructors =
    /\bnew (Accounts|ApiKeys|AuditLog|BrowserContexts|ContextVersions|Maintenance|RateLimit|RunFeed|RunQueue|RunStatistics|Runs|Sessions|SignInLinks|Users|Workers)\(|(?<!function )\b(openSqliteStore|openPostgresStore)\(/
  const composing = [
    ...['app.ts', 'worker/create-worker.ts'],
    ...['domain/create-domain.ts', 'domain/installation.ts', 'domain/worker-domain.ts'],
  ]
  const matches = files.filter((file) => constructors.test(readFileSync(join(root, 'src', file), 'utf8')))
  expect(matches.sort()).toEqual(composing.sort())
})

test('in the domain, runs import neither the queue nor the run API, and the queue not the run API', () => {
  const order = ['run-api', 'statistics', 'queue', 'runs']
  const nounOf = (path: string) => /^(?:src\/)?domain\/([^/]+)\//.exec(path)?.[1] ?? ''
  const between = imports.filter(({ file, target }) => nounOf(file) !== nounOf(target))
  const upwards = between.filter(({ file, target }) => {
    const [from, to] = [order.indexOf(nounOf(file)), order.indexOf(nounOf(target))]
    return from !== -1 && to !== -1 && to < from
  })
  expect(between.some(({ file, target }) => nounOf(file) === 'run-api' && nounOf(target) === 'queue')).toBe(true)
  expect(described(upwards)).toEqual([])
})

test('the domain knows nothing of the memory of HTTP requests: its handlers reserve what a read measures', () => {
  const memory = imports.filter(({ target }) => target === 'src/contract/tenant-limits.ts')
  expect(memory.some(({ file }) => file === 'contract/stages.ts')).toBe(true)
  expect(described(memory.filter(({ file }) => file.startsWith('domain/')))).toEqual([])
})

test('the service imports none of the tools', () => {
  expect(described(betweenModules.filter(({ to }) => to === 'tools'))).toEqual([])
})

test('only the operations and responses of a domain and the surfaces import generated server types', () => {
  const readers =
    /^surfaces\/(execution-api|browser-context-api)\.ts$|^domain\/[^/]+\/[a-z-]+-(operations|response)\.ts$/
  const generated = imports.filter(({ target }) => target.startsWith('generated/'))
  expect(generated.some(({ file }) => file === 'domain/run-api/run-operations.ts')).toBe(true)
  // The demo, the client and workers over HTTP see what callers see: nothing of the server.
  const callers = /^(tools\/demo\.ts|client\/|worker\/remote\/)/
  const violations = generated.filter(({ file, target }) => {
    return callers.test(file) ? target.endsWith('/server.ts') : !readers.test(file) || target.endsWith('/client.ts')
  })
  expect(described(violations)).toEqual([])
})

test('the published client imports only openapi-fetch and the generated client types', () => {
  // The command that writes types runs on Node only; nothing else of the client imports it.
  const ofCommand = /^client\/(types-command|workflow-type-file)\.ts$/
  const clientImports = imports.filter(({ file }) => file.startsWith('client/') && !ofCommand.test(file))
  const imported = clientImports.map(({ target }) => target.replace('src/', ''))
  expect(imported.filter((target) => ofCommand.test(target))).toEqual([])
  expect(clientImports).toContainEqual({ file: 'client/index.ts', target: 'generated/execution.v1/client.ts' })
  const allowed = /^(openapi-fetch|src\/client\/.+|generated\/[^/]+\/(client|types)\.ts)$/
  expect(described(clientImports.filter(({ target }) => !allowed.test(target)))).toEqual([])
})

test('SQL is written only in storage/, domain/ and maintenance/', () => {
  const databases = imports.filter(({ target }) => target === 'kysely' || target === 'node:sqlite')
  const isAllowed = /^(storage|domain|maintenance)\//
  expect(described(databases.filter(({ file }) => !isAllowed.test(file)))).toEqual([])
})

test('SQL on the runs table is written only in storage/runs/, apart from its migration', () => {
  const touches =
    /\b(FROM|JOIN|INTO|UPDATE)\s+runs\b|\b(updateTable|selectFrom|insertInto|deleteFrom|\w*[jJ]oin)\(\s*'runs\b/
  const touching = files.filter((file) => touches.test(readFileSync(join(root, 'src', file), 'utf8')))
  expect(touching).toContain('storage/runs/run-statements.ts')
  expect(touching.filter((file) => !/^storage\/(runs|migrations)\//.test(file))).toEqual([])
})

test('the module that authors of workflows import brings no code of the service with it', () => {
  const ofAuthors = imports.filter(({ file }) => file === 'domain/workflows/define-workflow.ts')
  expect(ofAuthors.map(({ target }) => target)).toEqual(['playwright-core', 'typebox'])
})
