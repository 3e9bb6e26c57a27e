import JSZip from 'jszip'
import { use } from '../lib/use.mjs'

export default use('jszip', 'writes a ZIP file, and reads it', 'Hello', async () => {
  const content = await new JSZip().file('hello.txt', 'Hello').generateAsync({ type: 'nodebuffer' })
  return (await JSZip.loadAsync(content)).file('hello.txt').async('string')
})
