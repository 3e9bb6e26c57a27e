/** Reads the credential of a request from the header that the operation's security scheme names. */
import type { IncomingMessage } from 'node:http'
import type { SecurityScheme } from '../openapi/served-operations.ts'

export interface CredentialReader {
  /** The credential, or `undefined` unless the request has exactly one. */
  read(request: IncomingMessage): string | undefined
  /** The value of `WWW-Authenticate` (RFC 9110, section 11.6.1). */
  challenge: string
}

export function credentialReader(scheme: SecurityScheme, realm: string): CredentialReader {
  if (scheme.type === 'header') {
    const name = scheme.name.toLowerCase()
    const challenge = `ApiKey realm="${realm}", header="${scheme.name}"`
    return { challenge, read: (request) => findOnlyValue(request, name) }
  }
  const challenge = `Bearer realm="${realm}"`
  return { challenge, read: (request) => bearerToken(findOnlyValue(request, 'authorization')) }
}

/**
 * The header's value when it was sent once. `request.headers` would hide a second one: it keeps the first
 * `Authorization`, and joins the values of other headers with a comma.
 */
function findOnlyValue(request: IncomingMessage, name: string): string | undefined {
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

/** The name of the scheme is case-insensitive (RFC 9110, section 11.1). */
function bearerToken(value: string | undefined): string | undefined {
  return value && /^bearer +([^ ]+)$/i.exec(value)?.[1]
}
