/** A process that needs the key of each of these directories: `node key-process.ts DIRECTORY…`; it tells them all. */
import { installationKey } from '../../src/storage/encryption.ts'

process.once('message', () => {
  const keys = process.argv.slice(2).map((directory) => installationKey(directory, undefined).toString('hex'))
  process.send?.(keys, () => process.exit())
})
process.send?.('ready')
