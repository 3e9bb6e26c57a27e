/** The Execution API's operations on files. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { requestedRange } from '../../contract/conditional-requests.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, rangeNotSatisfiable, toTimestamp } from '../problems.ts'
import { type ArtifactMediaType, artifactMediaTypes } from '../workflows/define-workflow.ts'
import { type Files, partBytes, type StoredFile } from './files.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'createFile' | 'getFile' | 'deleteFile'>

export interface FileDependencies {
  files: Files
}

export function fileOperations({ files }: FileDependencies): Operations {
  return {
    async createFile(request) {
      const { principal, query, body } = request
      await reserveParts(request, body.declaredBytes ?? partBytes)
      const { mediaType, declaredBytes } = body
      const file = { name: query.name, mediaType, declaredBytes, content: body }
      const stored = await files.create(principal.accountId, file, principal)
      const headers = { Location: `/v1/execution/files/${stored.id}` }
      return { status: 201, headers, body: toResponse(stored) }
    },

    async getFile(request) {
      const { principal, path, header } = request
      const file = await files.get(principal.accountId, path.fileId)
      if (!file) return notFound('file')
      const { sizeBytes } = file
      const select = { range: header.Range, ifRange: header['If-Range'] }
      const range = requestedRange(select, { etag: etagOf(file), sizeBytes })
      if (range === 'unsatisfiable') return rangeNotSatisfiable('file', sizeBytes)
      await reserveParts(request, sizeBytes)
      const headers = { ...fileHeaders(file), 'Accept-Ranges': 'bytes' as const }
      const content = { stream: files.stream(file, range), mediaType: documentedType(file) }
      if (!range) return { status: 200, headers, ...content }
      const position = { 'Content-Range': `bytes ${range.first}-${range.last}/${sizeBytes}` }
      return { status: 206, headers: { ...headers, ...position }, ...content }
    },

    async deleteFile({ principal, path }) {
      const deleted = await files.delete(principal.accountId, path.fileId, principal)
      if (!deleted) return notFound('file')
      return deleted === 'deleted' ? { status: 204 } : inUse
    },
  }
}

/** Waits until the account may have a part of a file in memory. The transfer itself must not keep others waiting. */
export async function reserveParts(
  request: { reserve(bytes: number): Promise<void> | undefined; unlockProcessing(): void },
  sizeBytes: number,
) {
  await request.reserve(Math.min(sizeBytes, partBytes))
  request.unlockProcessing()
}

export function fileHeaders(file: StoredFile) {
  return {
    'Content-Disposition': contentDisposition(file.name),
    'X-Content-Type-Options': 'nosniff' as const,
    ETag: etagOf(file),
  }
}

/** Names outside of ASCII as RFC 8187 encodes them, with a substitute for clients that do not read that. */
export function contentDisposition(name: string): string {
  const plain = `attachment; filename="${name.replace(/[^ -~]/g, '_').replace(/["\\]/g, '\\$&')}"`
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return /^[ -~]*$/.test(name) ? plain : `${plain}; filename*=UTF-8''${encoded}`
}

function etagOf({ sha256 }: StoredFile): string {
  return `"${sha256}"`
}

/** The document lists the media types of responses. */
function documentedType({ mediaType }: StoredFile): ArtifactMediaType {
  const [essence = ''] = mediaType.split(';')
  return artifactMediaTypes.find((each) => each === essence) ?? 'application/octet-stream'
}

const inUse = {
  status: 409,
  problem: {
    kind: 'file-in-use',
    detail:
      'An unfinished run or a schedule of this account refers to the file. Wait for the end of the run, or change the schedule, then delete the file. Nothing was deleted.',
  },
} as const

function toResponse(file: StoredFile): components['schemas']['StoredFile'] {
  const { id, name, mediaType, sizeBytes: bytes, sha256 } = file
  return {
    id,
    name,
    mediaType,
    bytes,
    sha256,
    createdAt: toTimestamp(file.createdAt),
    expiresAt: toTimestamp(file.expiresAt),
  }
}
