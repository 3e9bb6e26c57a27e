/** A process that opens the key file of each directory and sends all keys: `node key-process.ts DIRECTORY…`. */
import { createKeyFile, KeyFile, keyFilePath } from '../../src/storage/key-file.ts'

process.once('message', () => {
  const keys = process.argv.slice(2).map((directory) => {
    const path = keyFilePath(directory)
    createKeyFile(path)
    return new KeyFile(path).keys().map(({ bytes }) => bytes.toString('hex'))
  })
  process.send?.(keys, () => process.exit())
})
process.send?.('ready')
