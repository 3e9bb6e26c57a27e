/**
 * Errors with what caused them. Libraries wrap the error that says what happened: `fetch failed` has the refused
 * connection as its `cause`, and a host with several addresses an `AggregateError` without a message.
 */

const causesMax = 5
/** Of an `AggregateError`, such as the addresses of a host. */
const errorsMax = 5

/** The error, and what caused it, outermost first. Getters that throw end the list. */
export function withCauses(error: unknown): unknown[] {
  const chain = [error]
  // The list grows while it is read.
  for (const each of chain) {
    for (const cause of causesOf(each)) {
      if (chain.length > causesMax) return chain
      if (!chain.includes(cause)) chain.push(cause)
    }
  }
  return chain
}

function causesOf(error: unknown): unknown[] {
  try {
    if (!(error instanceof Error)) return []
    const { cause } = error
    const errors = error instanceof AggregateError ? error.errors.slice(0, errorsMax) : []
    return [...errors, ...(cause === undefined || cause === null ? [] : [cause])]
  } catch {
    return []
  }
}

/**
 * What happened, in one line: the message of the error, then those of its causes, such as
 * `fetch failed: connect ECONNREFUSED 127.0.0.1:8200`. A text that stands in an earlier one is not repeated.
 */
export function describeCauses(error: unknown): string {
  const texts: string[] = []
  for (const each of withCauses(error)) {
    const text = textOf(each)
    if (text !== '' && !texts.some((earlier) => earlier.includes(text))) texts.push(text)
  }
  const parts = texts.map((text, index) => (index < texts.length - 1 ? text.replace(/\.$/, '') : text))
  return parts.join(': ') || 'unknown error'
}

/** Some errors have a code only. An `AggregateError` without a message is described by its errors. */
function textOf(error: unknown): string {
  try {
    const { message, name, code, errors } = Object(error) as Partial<NodeJS.ErrnoException & AggregateError>
    if (typeof message !== 'string') return oneLine(String(error))
    if (message !== '') return oneLine(message)
    return errors && errors.length > 0 ? '' : String(code ?? name)
  } catch {
    return ''
  }
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

/** By codes of Node.js, c-ares, OpenSSL and undici: what happened to a connection, as the rest of a sentence about a host. */
const connectionFailures: Readonly<Record<string, string>> = {
  ...each('refused the connection', 'ECONNREFUSED'),
  ...each('closed the connection before it responded', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET'),
  ...each('did not accept the connection in time', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'),
  ...each('did not respond in time', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'TimeoutError'),
  ...each('cannot be reached from this network', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'),
  ...each('has a name without an address', 'ENOTFOUND', 'ENODATA'),
  ...each('has a name that the name servers did not resolve', 'EAI_AGAIN', 'ETIMEOUT', 'ESERVFAIL', 'EREFUSED'),
  ...each('has a certificate that has expired', 'CERT_HAS_EXPIRED'),
  ...each('has a certificate for another name', 'ERR_TLS_CERT_ALTNAME_INVALID'),
  ...each(
    'has a certificate of an authority that is not trusted here',
    ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ...['UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
  ),
}

/** OpenSSL and the parser of HTTP have a code for each mistake. */
const connectionFailurePatterns: readonly [RegExp, string][] = [
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'did not complete the TLS handshake'],
  [/^(HPE_|UND_ERR_HTTP)/, 'sent no valid HTTP response'],
]

function each(failure: string, ...codes: string[]): Record<string, string> {
  return Object.fromEntries(codes.map((code) => [code, failure]))
}

/**
 * Why a host was not reached, as a sentence with the code; `undefined` for other errors. It quotes no message: those of
 * sockets have addresses, which the reader may not be allowed to see.
 *
 * @param host begins the sentence.
 */
export function describeConnectionFailure(host: string, error: unknown): string | undefined {
  for (const cause of withCauses(error)) {
    const { code, name } = Object(cause) as { code?: unknown; name?: unknown }
    for (const given of [code, name].map(String)) {
      const failure =
        (Object.hasOwn(connectionFailures, given) ? connectionFailures[given] : undefined) ??
        connectionFailurePatterns.find(([pattern]) => pattern.test(given))?.[1]
      if (failure) return `${host} ${failure} (${given}).`
    }
  }
  return undefined
}
