/** Validates responses against the document before they are sent: status, media type, required headers, and the body. */
import type { Operation } from '../openapi/served-operations.ts'
import type { Check, Mismatch } from './compiled-checks.ts'
import { EncodedJson, JsonText } from './i-json.ts'
import type { FindCheck } from './response-checks.ts'

/** Headers that every response has; see `send` in response.ts. */
export const commonHeaders = ['X-Request-Id', 'X-Document-Hash', 'Cache-Control']

export interface ResponseValidation {
  /** @param headers by their names as the document spells them. */
  check(status: number, mediaType: string | undefined, headers: object, body: unknown): Mismatch | undefined
  /** Checks the data of one server-sent event. */
  checkEvent: Check
}

export function responseValidation(find: FindCheck, operation: Operation): ResponseValidation {
  const documented = new Map<number, { requiredHeaders: string[]; checks: Map<string, Check> }>()
  let checkEvent: Check = () => mismatch('the operation has no event stream')
  for (const [status, { content, isBinary, requiredHeaders }] of operation.responses) {
    const checks = new Map<string, Check>()
    for (const mediaType of Object.keys(content)) {
      checks.set(mediaType, isBinary ? checkBytes : find(operation, status, mediaType))
      if (mediaType === 'text/event-stream') checkEvent = find(operation, status, mediaType, 'event')
    }
    documented.set(status, { checks, requiredHeaders: requiredHeaders.filter((name) => !commonHeaders.includes(name)) })
  }
  return {
    checkEvent,
    check(status, mediaType, headers, body) {
      const response = documented.get(status)
      if (!response) return mismatch(`status ${status} is not documented`)
      const missing = response.requiredHeaders.find((name) => !(name in headers))
      if (missing) return mismatch(`the header ${missing} is missing`)
      if (mediaType === undefined) return response.checks.size > 0 ? mismatch('the body is missing') : undefined
      const check = response.checks.get(mediaType)
      if (!check) return mismatch(`the media type ${mediaType} is not documented`)
      if (check !== checkBytes && body instanceof Uint8Array) return mismatch('the response is not documented as bytes')
      return body instanceof JsonText || body instanceof EncodedJson ? undefined : check(body)
    },
  }
}

const checkBytes: Check = (body) => (body instanceof Uint8Array ? undefined : mismatch('the body must be bytes'))

/** Of the response as a whole. */
function mismatch(detail: string): Mismatch {
  return { pointer: '', detail }
}
