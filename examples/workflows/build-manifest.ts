/** Hashes every file below a directory in batches: a long run that reports progress, stops promptly, and resumes. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'
import { confinedPath } from './access/files.ts'

const filesMax = 100_000
const filesPerStepDefault = 64
const filesAtOnce = 4

interface HashedFile {
  /** In the format of `sha256sum`. */
  line: string
  bytes: number
}

export default defineWorkflow({
  id: 'build-manifest',
  version: '1.0.0',
  title: 'Fingerprint the files of a directory',
  description: 'Computes the SHA-256 of every file below a directory, and of the list of them.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['directory'],
    properties: {
      directory: {
        type: 'string',
        minLength: 1,
        description: 'Path of the directory, relative to the directory of the examples.',
        examples: ['.'],
      },
      pauseMilliseconds: {
        type: 'integer',
        minimum: 0,
        maximum: 60_000,
        default: 0,
        description: 'Pause before each step, to leave the disk to others.',
      },
      filesPerStep: {
        type: 'integer',
        minimum: 1,
        maximum: 1000,
        default: filesPerStepDefault,
        description: 'How many files a step hashes: at most this much work is repeated when a worker dies.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['files', 'bytes', 'digest'],
    properties: {
      files: { type: 'integer', description: 'Number of files. Symbolic links are not followed.' },
      bytes: { type: 'integer', description: 'Total size in bytes.' },
      digest: {
        type: 'string',
        pattern: '^[0-9a-f]{64}$',
        description: 'SHA-256 of the manifest: equal for two directories with the same paths and contents.',
      },
    },
  },
  timeLimitSeconds: 3600,
  // More runs at once would compete for the disk.
  concurrency: { limit: 2, per: 'workflow' },
  async run({ variables, step, log, progress, signal }) {
    const { pauseMilliseconds, filesPerStep = filesPerStepDefault } = variables
    const directory = await confinedPath(variables.directory)
    const paths = await step('list', () => filesBelow(directory, signal))
    log(`Found ${paths.length} files below ${variables.directory}`)
    const manifest = createHash('sha256')
    let files = 0
    let bytes = 0
    for (let first = 0; first < paths.length; first += filesPerStep) {
      const batch = paths.slice(first, first + filesPerStep)
      const hashed = await step(`hash from file ${first + 1}`, async () => {
        await setTimeout(pauseMilliseconds, undefined, { signal })
        return hashAll(directory, batch, signal)
      })
      for (const file of hashed) {
        manifest.update(file.line)
        bytes += file.bytes
      }
      files += hashed.length
      if (hashed.length < batch.length)
        log(`${batch.length - hashed.length} files were deleted since they were listed`, 'warn')
      const done = first + batch.length
      progress((done / paths.length) * 100, `${done} of ${paths.length} files`)
    }
    return { files, bytes, digest: manifest.digest('hex') }
  },
})

/** Returns relative paths, sorted so that the same files always give the same manifest. */
async function filesBelow(directory: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = []
  for await (const entry of await opendir(directory, { recursive: true })) {
    signal.throwIfAborted()
    if (!entry.isFile()) continue
    paths.push(relative(directory, join(entry.parentPath, entry.name)))
    if (paths.length > filesMax) throw new Error(`${directory} has more than ${filesMax} files.`)
  }
  return paths.sort()
}

/** Hashes a few files at a time. Skips files that were deleted meanwhile. */
async function hashAll(directory: string, paths: string[], signal: AbortSignal): Promise<HashedFile[]> {
  const hashed: (HashedFile | undefined)[] = []
  const remaining = paths.entries()
  const hashRemaining = async () => {
    // All loops take files from the same iterator.
    for (const [index, path] of remaining) hashed[index] = await hash(directory, path, signal)
  }
  await Promise.all(Array.from({ length: filesAtOnce }, hashRemaining))
  return hashed.filter((file) => file !== undefined)
}

async function hash(directory: string, path: string, signal: AbortSignal): Promise<HashedFile | undefined> {
  const sha256 = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of createReadStream(join(directory, path), { signal })) {
      sha256.update(chunk)
      bytes += chunk.length
    }
    return { line: `${sha256.digest('hex')}  ${path}\n`, bytes }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
