/** The files of runs: the table on the page of a run, downloads, and uploads of the form that queues a run. */
import { ClientGone, openRawBody } from '../../../contract/body.ts'
import { Problem, problemType } from '../../../contract/problem.ts'
import { contentDisposition } from '../../../domain/files/file-operations.ts'
import { partBytes, type StoredFile } from '../../../domain/files/files.ts'
import { problemTypes } from '../../../domain/problems.ts'
import { formatBytes } from '../format.ts'
import { type Html, html, nothing, table } from '../html.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'

export function renderFiles(files: readonly StoredFile[]): Html | '' {
  if (files.length === 0) return nothing
  const rows = files.map(({ id, name, mediaType, sizeBytes }) => [
    html`<a href="/files/${id}" download><strong>${name}</strong></a>`,
    html`<code>${mediaType}</code>`,
    formatBytes(sizeBytes),
  ])
  return html`<h2>Files</h2>
    ${table(['File', 'Type', { number: 'Size' }], rows, 'Files')}`
}

/** Always an attachment, as artifacts are. */
export const downloadFile: StreamHandler = async ({ account, params, reserve }, { files }, _request, response) => {
  const file = orNotFound(await files.get(account.id, params.id ?? ''))
  await reserve(Math.min(file.sizeBytes, partBytes))
  response.set({
    'Content-Disposition': contentDisposition(file.name),
    'Content-Length': String(file.sizeBytes),
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
  })
  response.setHeader('Content-Type', 'application/octet-stream')
  for await (const chunk of files.stream(file).chunks) {
    if (response.destroyed) return
    if (!response.write(chunk)) await drained(response)
  }
  response.end()
}

type StreamResponse = Parameters<StreamHandler>[3]

/** Also resolves when the client has gone. */
function drained(response: StreamResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}

/** Responds with the id of the file, or with why it was not stored, as text. */
export const uploadFile: StreamHandler = async (page, { files, fileBytesMax }, request, response) => {
  const { account, actor, query } = page
  const respond = (status: number, text: string) => {
    // The rest of the body would have to be read before the next request.
    if (!request.complete) response.set('Connection', 'close')
    response.status(status).type('text/plain').send(text)
    if (!request.complete) request.resume()
  }
  const name = query.get('name') ?? 'file'
  try {
    const content = openRawBody(request, fileBytesMax)
    const { mediaType, declaredBytes } = content
    const stored = await files.create(account.id, { name, mediaType, declaredBytes, content }, actor)
    respond(200, stored.id)
  } catch (error) {
    if (error instanceof ClientGone) return
    if (!(error instanceof Problem)) throw error
    const { kind, detail, errors = [] } = error.problem
    const sentences = errors.map((each) => {
      const place = 'pointer' in each ? each.pointer.slice(1) : 'name'
      return `The ${place} of the file ${each.detail}.`
    })
    respond(problemType(problemTypes, kind).status, sentences.join(' ') || detail)
  }
}
