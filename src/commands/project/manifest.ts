/** The `package.json` of the repository or, in an installation, of the published package. */
import { readFile } from 'node:fs/promises'

const file = new URL('../../../package.json', import.meta.url)

type Versions = Record<string, string>

export interface Manifest {
  name: string
  version: string
  description: string
  license: string
  engines: Versions
  dependencies: Versions
  /** Not in the published package. */
  devDependencies?: Versions
  peerDependencies?: Versions
  optionalDependencies?: Versions
  /** In the published package: versions that projects of authors get. */
  projectDependencies?: Versions
}

export async function readManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(file, 'utf8'))
}
