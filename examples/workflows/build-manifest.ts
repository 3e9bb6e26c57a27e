/** Hashes every file below a directory: a long run that reports progress, ends promptly, and resumes where it was. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

const filesMax = 100_000
/** What is lost when a worker dies: the work of one batch. */
const filesPerBatch = 64
const filesAtOnce = 4

interface HashedFile {
  /** As `sha256sum` writes it. */
  line: string
  bytes: number
}

export default defineWorkflow({
  id: 'build-manifest',
  version: '1.0.0',
  title: 'Fingerprint the files of a directory',
  description: 'Builds a manifest, the SHA-256 of every file below a directory, and returns its digest.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['directory'],
    properties: {
      directory: {
        type: 'string',
        minLength: 1,
        description: "The directory, from the worker's working directory.",
        examples: ['src'],
      },
      pauseMilliseconds: {
        type: 'integer',
        minimum: 0,
        maximum: 60_000,
        default: 0,
        description: `How long to rest before every ${filesPerBatch} files, to leave the disk to others.`,
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['files', 'bytes', 'digest'],
    properties: {
      files: { type: 'integer', description: 'How many files there are; symbolic links are not followed.' },
      bytes: { type: 'integer', description: 'How long they are together.' },
      digest: {
        type: 'string',
        pattern: '^[0-9a-f]{64}$',
        description: 'SHA-256 of the manifest: equal for two directories whose files have the same paths and contents.',
      },
    },
  },
  timeLimitSeconds: 3600,
  // More at once would only make each of them wait for the disk.
  concurrencyLimit: 2,
  async run({ variables, step, log, progress, signal }) {
    const { directory, pauseMilliseconds } = variables
    const paths = await step('list', () => filesBelow(directory, signal))
    log(`${paths.length} files are below ${directory}`)
    const manifest = createHash('sha256')
    let files = 0
    let bytes = 0
    for (let first = 0; first < paths.length; first += filesPerBatch) {
      const batch = paths.slice(first, first + filesPerBatch)
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
        log(`${batch.length - hashed.length} files are gone since they were listed`, 'warn')
      const done = first + batch.length
      progress((done / paths.length) * 100, `${done} of ${paths.length} files`)
    }
    return { files, bytes, digest: manifest.digest('hex') }
  },
})

/** Relative paths, sorted, so that the same files always give the same manifest. */
async function filesBelow(directory: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = []
  for await (const entry of await opendir(directory, { recursive: true })) {
    signal.throwIfAborted()
    if (!entry.isFile()) continue
    paths.push(relative(directory, join(entry.parentPath, entry.name)))
    if (paths.length > filesMax) throw new Error(`More than ${filesMax} files are below ${directory}.`)
  }
  return paths.sort()
}

/** Hashes a few files at a time; leaves out those that do not exist any more. */
async function hashAll(directory: string, paths: string[], signal: AbortSignal): Promise<HashedFile[]> {
  const hashed: (HashedFile | undefined)[] = []
  const remaining = paths.entries()
  const hashRemaining = async () => {
    // Each of the loops takes its next file from the one iterator that they share.
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
