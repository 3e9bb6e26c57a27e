/** Confines the examples to the files of one directory, whatever path a caller sends. */
import { realpath } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'

/**
 * `EXAMPLE_FILES_DIR`, by default `examples/files` in the directory in which the service was started. Not relative to this
 * file: a deployment has modules only, and they are executed elsewhere.
 */
const directory = resolve(process.env.EXAMPLE_FILES_DIR || 'examples/files')

/**
 * Returns the absolute path without symbolic links. A path outside is refused before the disk is read, so that errors do
 * not reveal which files exist there.
 */
export async function confinedPath(path: string): Promise<string> {
  const requested = resolve(directory, path)
  if (!isWithin(requested, directory)) throw new Error(`${path} is outside the directory of the examples. ${advice}`)
  const root = await realpath(directory)
  // Not Node's error, which has the absolute path.
  const found = await realpath(requested).catch(() => {
    throw new Error(`${path} does not exist or cannot be read.`)
  })
  if (!isWithin(found, root)) throw new Error(`${path} leads outside the directory of the examples. ${advice}`)
  return found
}

const advice = 'EXAMPLE_FILES_DIR sets the directory.'

function isWithin(path: string, root: string): boolean {
  const below = relative(root, path)
  return below !== '..' && !below.startsWith(`..${sep}`)
}
