/** The mock's artifacts: a small valid file of each documented media type. */
import { readFile } from 'node:fs/promises'

const files: Record<string, { extension: string; content: string | Uint8Array | URL }> = {
  'application/json': { extension: '.json', content: '{ "words": 812 }\n' },
  'application/octet-stream': { extension: '.bin', content: Uint8Array.from({ length: 256 }, (_, byte) => byte) },
  'application/pdf': { extension: '.pdf', content: createPdf('A sample file of the mock.') },
  // The end record of an empty archive.
  'application/zip': { extension: '.zip', content: Buffer.from('PK\x05\x06'.padEnd(22, '\0')) },
  'image/jpeg': { extension: '.jpg', content: new URL('files/sample.jpg', import.meta.url) },
  'image/png': { extension: '.png', content: new URL('files/sample.png', import.meta.url) },
  'image/webp': { extension: '.webp', content: new URL('files/sample.webp', import.meta.url) },
  'text/csv': { extension: '.csv', content: 'word,count\nthe,41\n' },
  'text/plain': { extension: '.txt', content: 'A sample file of the mock.\n' },
}

/** The media type of a file name's extension, or `undefined` for an unknown one. */
export function mediaTypeByName(name: string): string | undefined {
  return Object.keys(files).find((type) => name.toLowerCase().endsWith(files[type]?.extension ?? ''))
}

export async function readSampleFile(mediaType: string): Promise<Uint8Array> {
  const file = files[mediaType]
  if (!file) throw new Error(`src/tools/mock/sample-files.ts has no file of the media type ${mediaType}.`)
  const { content } = file
  if (content instanceof URL) return readFile(content)
  return typeof content === 'string' ? Buffer.from(content) : content
}

/** A PDF of one page with one line of text. */
function createPdf(text: string): string {
  const stream = `BT /F1 12 Tf 24 96 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 240 120] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let pdf = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = pdf.length
    pdf += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  return `${pdf}${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
}
