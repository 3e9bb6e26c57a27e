/** Verifies webhook requests by the Standard Webhooks specification, with Web Crypto, which every runtime has. */
import type { components } from '../../generated/execution.v1/types.ts'

/** The body of a webhook request. */
export type WebhookEvent = components['schemas']['WebhookEvent']

/** The request was not signed with the secret, or it is too old or too new. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

const toleranceSeconds = 5 * 60

/** Headers of a request: of `fetch`, or of Node's `http`. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Returns the event of a webhook request.
 *
 * @param body the raw body, before it is parsed.
 * @param secret the endpoint's secret, `whsec_…`.
 * @throws {WebhookVerificationError} if it was not signed with the secret, or was sent more than five minutes ago.
 */
export async function verifyWebhook(body: string, headers: WebhookHeaders, secret: string): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const seconds = Number(timestamp)
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - seconds) > toleranceSeconds) {
    throw new WebhookVerificationError('The timestamp of the request is missing, too old or too new.')
  }
  const signatures = headerOf(headers, 'webhook-signature').split(' ')
  const key = await importKey(secret)
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  for (const signature of signatures) {
    const bytes = signature.startsWith('v1,') ? decode(signature.slice('v1,'.length)) : undefined
    // Compares in constant time.
    if (bytes && (await crypto.subtle.verify('HMAC', key, bytes, content))) return JSON.parse(body)
  }
  throw new WebhookVerificationError('The request has no signature with this secret.')
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value = typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : ''
}

function importKey(secret: string) {
  const key = decode(secret.replace(/^whsec_/, ''))
  if (!key || key.length === 0) throw new WebhookVerificationError('The secret is not base64: it has the form whsec_….')
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
