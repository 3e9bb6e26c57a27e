/** Reads request bodies: form fields and, on one page, a file. Other media types are refused with 415. */
import { MIMEType } from 'node:util'
import express, { type Request, type RequestHandler, type Response } from 'express'

class UnsupportedBody extends Error {
  readonly status = 415
}

/** Reads application/x-www-form-urlencoded fields of at most `maxBytes`. */
export function readFormFields(maxBytes: number): RequestHandler[] {
  return [
    express.text({ type: 'application/x-www-form-urlencoded', limit: maxBytes }),
    (request, response, next) => {
      const isForm = request.headers['content-type'] === undefined || request.is('urlencoded') !== false
      if (!isForm && response.locals.file === undefined) throw new UnsupportedBody()
      const text = typeof request.body === 'string' ? request.body : ''
      // PostgreSQL cannot store U+0000. Replaced by U+0001, it is refused by the validation of the field.
      response.locals.form = new URLSearchParams(text.replaceAll(/%00|\0/g, '%01'))
      next()
    },
  ]
}

export function submittedForm(response: Response): URLSearchParams {
  return response.locals.form ?? new URLSearchParams()
}

/** The file's bytes, `none` when the user chose no file. */
export type UploadedFile = Uint8Array | 'none' | 'tooLarge'

/** Room for the multipart headers around the file, in bytes. */
const multipartOverheadMax = 16 * 1024

/** One part per form field. Without a limit, 40,000 empty parts blocked the process for 1.1 s. */
const partsMax = 10

const multipart = 'multipart/form-data'

/** Reads a file of at most `maxBytes` from the named field (multipart/form-data, RFC 7578). Precedes `readFormFields`. */
export function readFormFile(fieldName: string, maxBytes: number): RequestHandler {
  const readBody = express.raw({ type: multipart, limit: maxBytes + multipartOverheadMax, inflate: false })
  return (request, response, next) => {
    if (!request.is(multipart)) return next()
    const storeFile = async (error: unknown): Promise<void> => {
      if ((error as { status?: unknown } | undefined)?.status === 413) response.locals.file = 'tooLarge'
      else if (error) throw error
      else {
        const file = await parseFile(request, fieldName)
        response.locals.file = file instanceof Uint8Array && file.length > maxBytes ? 'tooLarge' : file
      }
    }
    readBody(request, response, (error) => void storeFile(error).then(() => next(), next))
  }
}

export function submittedFile(response: Response): UploadedFile {
  return response.locals.file ?? 'none'
}

async function parseFile(request: Request, fieldName: string): Promise<UploadedFile> {
  const type = request.headers['content-type'] ?? ''
  const bytes: Buffer = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  if (hasTooManyParts(bytes, type)) throw new UnsupportedBody()
  const body = new globalThis.Response(new Uint8Array(bytes), { headers: { 'content-type': type } })
  const form = await body.formData().catch(() => {
    throw new UnsupportedBody()
  })
  const file = form.get(fieldName)
  // Without a chosen file, browsers send an empty one without a name.
  if (!(file instanceof File) || (file.name === '' && file.size === 0)) return 'none'
  return file.bytes()
}

/** Also true without a boundary. Stops counting at the limit. */
function hasTooManyParts(bytes: Buffer, type: string): boolean {
  const boundary = parseBoundary(type)
  if (!boundary) return true
  const delimiter = Buffer.from(`--${boundary}`)
  // One more delimiter ends the body.
  const delimitersMax = partsMax + 1
  let count = 0
  for (let at = bytes.indexOf(delimiter); at !== -1 && count <= delimitersMax; at = bytes.indexOf(delimiter, at + 1))
    count++
  return count > delimitersMax
}

function parseBoundary(type: string): string | null {
  try {
    return new MIMEType(type).params.get('boundary')
  } catch {
    return null
  }
}
