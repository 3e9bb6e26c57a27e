/** Snapshots of workflows for tests: built from a directory once, or written by hand without starting a process. */
import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, buildSnapshot } from '../../src/domain/deployments/build-snapshot.ts'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'

import type { Workflow } from '../../src/domain/workflows/workflow.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cache = join(root, 'node_modules/.cache/test-snapshots')

/**
 * Like `buildSnapshot`, which takes half a second of CPU. The snapshot of a directory with the same content is read from
 * a cache that all test files share.
 */
export async function buildOnce(directory: string, options?: BuildOptions): Promise<Snapshot> {
  const path = join(cache, `${hash('sha256', [...inputs(directory), ...builder()].join('\n'))}.json`)
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    const snapshot = await buildSnapshot(directory, options)
    mkdirSync(cache, { recursive: true })
    const temporary = `${path}.${process.pid}`
    writeFileSync(temporary, JSON.stringify(snapshot))
    renameSync(temporary, path)
    return snapshot
  }
}

const built = new Map<string, Promise<Snapshot>>()

/** The snapshot of a directory that does not change during the tests. */
export function snapshotOf(directory: string): Promise<Snapshot> {
  const snapshot = built.get(directory) ?? buildOnce(directory)
  built.set(directory, snapshot)
  return snapshot
}

let builderInputs: string[] | undefined

/** What builds the snapshot: the code of the service and the packages. */
function builder(): string[] {
  builderInputs ??= [
    ...['src/domain/deployments', 'src/domain/workflows', 'src/openapi'].flatMap((path) => inputs(join(root, path))),
    readFileSync(join(root, 'package-lock.json'), 'utf8'),
  ]
  return builderInputs
}

/** The paths and contents of all files. */
function inputs(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort()
  return paths.flatMap((path) => [path.slice(directory.length), readFileSync(path, 'utf8')])
}

/** A workflow with any variables and output, except for `changes`. */
export function workflow(changes: Partial<Workflow> = {}): Workflow {
  return {
    id: 'anything',
    version: '1.0.0',
    title: 'Anything',
    description: null,
    variables: { type: 'object' },
    output: {},
    retry: { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 },
    timeLimitSeconds: 60,
    usesBrowser: false,
    evidence: 'onFailure',
    deprecated: false,
    ...changes,
  }
}

/** The source of a workflow's module, and what differs from `workflow()` in its definition. */
export interface WrittenWorkflow extends Partial<Workflow> {
  module: string
}

/** Returns the source of a module whose workflow runs this code, which may use the names of the context's members. */
export function runModule(code: string): string {
  return `export default { run: async ({ variables, attempt, signal, step, artifact, runId }) => { ${code} } }\n`
}

/** A snapshot whose modules are not checked, by the ID of their workflows. */
export function writtenSnapshot(workflows: Record<string, WrittenWorkflow>, externals: string[] = []): Snapshot {
  const entries = Object.entries(workflows).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    files: entries.map(([id, { module }]) => ({ path: `${id}.js`, content: module })),
    externals,
    workflows: entries.map(([id, changes]) => ({ ...workflow({ id, ...changes }), module: `${id}.js` })),
  }
}
