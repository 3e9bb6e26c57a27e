/** What the dashboard's own forms send: fields, and on one page a file. No other body is read. */
import { MIMEType } from 'node:util'
import express, { type Request, type RequestHandler, type Response } from 'express'

/** A body that no form of these pages sends. */
class NoForm extends Error {
  readonly status = 415
}

/** Reads the fields of a form. */
export function readForm(bytesMax: number): RequestHandler[] {
  return [
    express.text({ type: 'application/x-www-form-urlencoded', limit: bytesMax }),
    (request, response, next) => {
      const isForm = request.headers['content-type'] === undefined || request.is('urlencoded') !== false
      if (!isForm && response.locals.file === undefined) throw new NoForm()
      response.locals.form = new URLSearchParams(typeof request.body === 'string' ? withoutNul(request.body) : '')
      next()
    },
  ]
}

/** PostgreSQL keeps no text with U+0000. With another control character in its place it is refused where it was. */
function withoutNul(text: string): string {
  return text.replaceAll(/%00|\0/g, '%01')
}

/** The fields of the form that was sent. */
export function formOf(response: Response): URLSearchParams {
  return response.locals.form ?? new URLSearchParams()
}

/** The bytes of a file that a form has sent. `none` when nobody has chosen one. */
export type SentFile = Uint8Array | 'none' | 'tooLarge'

/** What a form adds to its file. */
const formBytesMax = 16 * 1024

/** A form has one part for each of its fields. Not bounded, 40,000 empty ones held the process for 1.1 s. */
const partsMax = 10

const multipart = 'multipart/form-data'

/** Reads the file in the field of this name, as multipart/form-data (RFC 7578). Goes before `readForm`. */
export function readFile(name: string, bytesMax: number): RequestHandler {
  const read = express.raw({ type: multipart, limit: bytesMax + formBytesMax, inflate: false })
  return (request, response, next) => {
    if (!request.is(multipart)) return next()
    const take = async (error: unknown): Promise<void> => {
      if ((error as { status?: unknown } | undefined)?.status === 413) response.locals.file = 'tooLarge'
      else if (error) throw error
      else response.locals.file = bounded(await fileIn(request, name), bytesMax)
    }
    read(request, response, (error) => void take(error).then(() => next(), next))
  }
}

/** The file that was sent, where the page takes one. */
export function fileOf(response: Response): SentFile {
  return response.locals.file ?? 'none'
}

async function fileIn(request: Request, name: string): Promise<SentFile> {
  const type = request.headers['content-type'] ?? ''
  const bytes: Buffer = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  if (!hasFewParts(bytes, type)) throw new NoForm()
  const body = new globalThis.Response(new Uint8Array(bytes), { headers: { 'content-type': type } })
  const form = await body.formData().catch(() => {
    throw new NoForm()
  })
  const sent = form.get(name)
  // A browser sends an empty file without a name when none is chosen.
  if (!(sent instanceof File) || (sent.name === '' && sent.size === 0)) return 'none'
  return sent.bytes()
}

function bounded(file: SentFile, bytesMax: number): SentFile {
  return file instanceof Uint8Array && file.length > bytesMax ? 'tooLarge' : file
}

/** Looks no further than it has to. */
function hasFewParts(bytes: Buffer, type: string): boolean {
  const boundary = boundaryOf(type)
  if (!boundary) return false
  const delimiter = Buffer.from(`--${boundary}`)
  let count = 0
  for (let at = bytes.indexOf(delimiter); at !== -1 && count <= partsMax + 1; at = bytes.indexOf(delimiter, at + 1))
    count++
  // The last one ends the body.
  return count <= partsMax + 1
}

function boundaryOf(type: string): string | null {
  try {
    return new MIMEType(type).params.get('boundary')
  } catch {
    return null
  }
}
