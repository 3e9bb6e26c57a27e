import { buffer } from 'node:stream/consumers'
import { ZipArchive } from 'archiver'
import { use } from '../lib/use.mjs'

export default use('archiver', 'writes a ZIP file', 'PK', async () => {
  const archive = new ZipArchive()
  archive.append('Hello', { name: 'hello.txt' })
  archive.finalize()
  return (await buffer(archive)).toString('latin1', 0, 2)
})
