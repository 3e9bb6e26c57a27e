/** A snapshot of a directory of workflows: bundled modules and definitions, addressed by their content. */
import { hash } from 'node:crypto'
import { posix } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { type Workflow, WorkflowError } from '../workflows/workflow.ts'

/** A bundled module, its source map, or a file of a package that is carried as it is. */
export interface SnapshotFile {
  /** Relative to the snapshot, with `/`. Never leads out of it. */
  path: string
  content: string
  /** Of a content that is not UTF-8. */
  encoding?: 'base64'
  isExecutable?: true
}

export interface DeployedWorkflow extends Workflow {
  /** Path of the file whose default export is the definition. */
  module: string
}

export interface SnapshotContent {
  /** Sorted by path. */
  files: SnapshotFile[]
  /** Packages that are not in the files, since they contain native code: each machine needs them installed. */
  externals: string[]
}

export interface Snapshot extends SnapshotContent {
  /** Sorted by ID. */
  workflows: DeployedWorkflow[]
}

/** Of all files together, before compression. */
export const snapshotBytesMax = 50 * 1024 * 1024

/** Files and packages of one snapshot. */
export const snapshotFilesMax = 10_000

/** A name that npm accepts, and that is one directory, or two with a scope. */
const packageNamePattern = /^(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*\/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$/
const packageNameLengthMax = 214

/** Whether the package can be linked into a deployment's `node_modules`, and nowhere else. */
export function isPackageName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= packageNameLengthMax && packageNamePattern.test(name)
}

/** Whether the file lies within the snapshot. */
export function isInnerPath(path: unknown): path is string {
  if (typeof path !== 'string' || path.length > 1000 || /[\0\\]/.test(path)) return false
  return path.split('/').every((name) => name !== '' && name !== '.' && name !== '..')
}

function isSnapshotFile(value: unknown): value is SnapshotFile {
  const { path, content, encoding, isExecutable } = Object(value)
  if (!isInnerPath(path) || typeof content !== 'string') return false
  return [undefined, 'base64'].includes(encoding) && [undefined, true].includes(isExecutable)
}

/**
 * Checks the content of a snapshot. The process that builds one has loaded the author's code, so its report can have any
 * content.
 *
 * @throws {WorkflowError}
 */
export function checkContent(content: unknown): asserts content is SnapshotContent {
  const { files, externals } = Object(content) as Record<string, unknown>
  const isValid =
    Array.isArray(files) &&
    files.length <= snapshotFilesMax &&
    files.every(isSnapshotFile) &&
    new Set(files.map(({ path }) => path)).size === files.length &&
    Array.isArray(externals) &&
    externals.length <= snapshotFilesMax &&
    externals.every(isPackageName)
  if (!isValid) throw new WorkflowError('The workflows were not built: their process has reported an invalid snapshot.')
  if (sizeOfFiles({ files, externals }) > snapshotBytesMax)
    throw new WorkflowError('The workflows were not built: their process has reported a snapshot that is too large.')
}

/** The stored files are damaged, or are not those of the deployment. */
export class SnapshotDamaged extends Error {}

/**
 * SHA-256 of the account, the definitions and the files, in hexadecimal. Snapshots of the same directory are equal on
 * all machines.
 *
 * @param accountId `null` for the installation.
 */
export function snapshotId({ files, externals, workflows }: Snapshot, accountId: string | null): string {
  const hashes = files.map(({ path, content, encoding, isExecutable }) => {
    const kind = encoding === undefined && !isExecutable ? [] : [encoding ?? null, isExecutable ?? false]
    return [path, hash('sha256', content), ...kind]
  })
  return hash('sha256', JSON.stringify([1, accountId, hashes, externals, workflows]))
}

export function sizeOfFiles({ files }: SnapshotContent): number {
  return files.reduce((sum, { path, content, encoding }) => sum + path.length + Buffer.byteLength(content, encoding), 0)
}

export function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024)
}

export function tooLarge(content: SnapshotContent, largest: string): WorkflowError | undefined {
  const size = sizeOfFiles(content)
  if (size <= snapshotBytesMax) return undefined
  return new WorkflowError(
    `The workflows with all that they import have ${megabytes(size)} MiB, and a deployment may have ${megabytes(snapshotBytesMax)} MiB: the largest module is ${largest}.`,
  )
}

export async function packContent({ files, externals }: SnapshotContent): Promise<Uint8Array> {
  return promisify(gzip)(JSON.stringify({ files, externals }))
}

/** A whole snapshot, for a worker outside of the service. */
export async function packBundle({ workflows, files, externals }: Snapshot): Promise<Uint8Array> {
  return promisify(gzip)(JSON.stringify({ workflows, files, externals }))
}

/**
 * The snapshot with some of its workflows only: without the definitions of the others, and without bundled modules and source maps
 * that only the others need. Carried packages stay.
 */
export function limitToWorkflows(snapshot: Snapshot, isPermitted: (workflowId: string) => boolean): Snapshot {
  const workflows = snapshot.workflows.filter(({ id }) => isPermitted(id))
  const byPath = new Map(snapshot.files.map((file) => [file.path, file]))
  const needed = new Set(workflows.map(({ module }) => module))
  // The set grows while it is read.
  for (const path of needed) {
    const content = byPath.get(path)?.content ?? ''
    // Bundled modules import each other by relative paths in quotes.
    for (const specifier of content.split(/["'`]/)) {
      if (!specifier.startsWith('./') && !specifier.startsWith('../')) continue
      const imported = posix.join(posix.dirname(path), specifier)
      if (byPath.has(imported)) needed.add(imported)
    }
  }
  const isNeeded = (path: string) => path.startsWith('node_modules/') || needed.has(path.replace(/\.map$/, ''))
  return { ...snapshot, workflows, files: snapshot.files.filter(({ path }) => isNeeded(path)) }
}

/** @throws {Error} */
export async function unpackBundle(packed: Uint8Array): Promise<Snapshot> {
  return JSON.parse((await promisify(gunzip)(packed)).toString())
}

/** @throws {SnapshotDamaged} */
export async function unpackContent(packed: Uint8Array): Promise<SnapshotContent> {
  try {
    return JSON.parse((await promisify(gunzip)(packed)).toString())
  } catch (error) {
    throw new SnapshotDamaged(`The files of the deployment cannot be read: ${(error as Error).message}.`)
  }
}
