import { buffer } from 'node:stream/consumers'
import PDFDocument from 'pdfkit'
import { use } from '../lib/use.mjs'

export default use('pdfkit', 'writes a PDF document with a standard font', '%PDF-', async () => {
  const document = new PDFDocument()
  document.font('Helvetica-Bold').text('Hello').end()
  return (await buffer(document)).toString('latin1', 0, 5)
})
