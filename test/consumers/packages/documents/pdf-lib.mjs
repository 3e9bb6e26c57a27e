import { PDFDocument, StandardFonts } from 'pdf-lib'
import { use } from '../lib/use.mjs'

export default use('pdf-lib', 'writes a PDF document, and reads it', 1, async () => {
  const document = await PDFDocument.create()
  const font = await document.embedFont(StandardFonts.Helvetica)
  document.addPage().drawText('Hello', { font })
  return (await PDFDocument.load(await document.save())).getPageCount()
})
