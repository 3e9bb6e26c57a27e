/** Files that stand for what runs make: one of each media type that the documents have for a file. */
import { readFile } from 'node:fs/promises'

const files: Record<string, string> = {
  'application/json': 'sample.json',
  'application/octet-stream': 'sample.bin',
  'application/pdf': 'sample.pdf',
  'application/zip': 'sample.zip',
  'image/jpeg': 'sample.jpg',
  'image/png': 'sample.png',
  'image/webp': 'sample.webp',
  'text/csv': 'sample.csv',
  'text/plain': 'sample.txt',
}

/** The media type that a name's extension stands for, if it is one of these. */
export function mediaTypeOf(name: string): string | undefined {
  const [extension] = /\.[^.]+$/.exec(name.toLowerCase()) ?? []
  return extension && Object.keys(files).find((type) => files[type]?.endsWith(extension))
}

export async function sampleFile(mediaType: string): Promise<Uint8Array> {
  const file = files[mediaType]
  if (!file) throw new Error(`src/tools/mock/files has no file of the media type ${mediaType}.`)
  return readFile(new URL(`files/${file}`, import.meta.url))
}
