/** Reads the credential of a request from the header that the operation's security scheme names. */
import type { IncomingMessage } from 'node:http'
import type { SecurityScheme } from '../openapi/served-operations.ts'

const realm = 'execution-service'
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What a scheme does: reads a credential, and tells what is expected when there is none (RFC 9110, section 11.6.1). */
export interface CredentialReader {
  /** The UUID that was sent, in lower case (RFC 9562, section 4), or `undefined` when there is not exactly one. */
  read(request: IncomingMessage): string | undefined
  /** The value of `WWW-Authenticate`. */
  challenge: string
}

export function credentialReader(scheme: SecurityScheme): CredentialReader {
  if (scheme.type === 'header') {
    const name = scheme.name.toLowerCase()
    const challenge = `ApiKey realm="${realm}", header="${scheme.name}"`
    return { challenge, read: (request) => canonical(onlyValue(request, name)) }
  }
  return {
    challenge: `Bearer realm="${realm}"`,
    read: (request) => canonical(token(onlyValue(request, 'authorization'))),
  }
}

/**
 * The header's value when it was sent once. `request.headers` would hide a second one: it keeps the first
 * `Authorization`, and joins the values of other headers with a comma.
 */
function onlyValue(request: IncomingMessage, name: string): string | undefined {
  const { rawHeaders } = request
  let value: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index] as string
    if (header.length !== name.length || header.toLowerCase() !== name) continue
    if (value !== undefined) return undefined
    value = rawHeaders[index + 1]
  }
  return value
}

/** What follows the scheme's name, which is case-insensitive (RFC 9110, section 11.1). */
function token(value: string | undefined): string | undefined {
  return value && /^bearer +([^ ]+)$/i.exec(value)?.[1]
}

function canonical(value: string | undefined): string | undefined {
  const lower = value?.toLowerCase()
  return lower && uuid.test(lower) ? lower : undefined
}
