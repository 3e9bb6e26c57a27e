/** Errors are described with what caused them, and connections by what happened to them, without addresses. */
import { expect, test } from 'vitest'
import { describeCauses, describeConnectionFailure } from '../../src/storage/error-causes.ts'

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
const failed = new TypeError('fetch failed', { cause: refused })
const cyclic = new Error('outer')
cyclic.cause = new Error('inner', { cause: cyclic })
const hostile = Object.defineProperty(new Error('kept'), 'cause', {
  get() {
    throw new Error('hidden')
  },
})

test.each([
  [failed, 'fetch failed: connect ECONNREFUSED 127.0.0.1:1'],
  [new AggregateError([refused, new Error('connect ETIMEDOUT ::1:1')]), `${refused.message}: connect ETIMEDOUT ::1:1`],
  [new Error(`It failed (${refused.message}).`, { cause: failed }), `It failed (${refused.message}): fetch failed`],
  [Object.assign(new AggregateError([]), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [new RangeError(''), 'RangeError'],
  [new Error('two\n  lines'), 'two lines'],
  [cyclic, 'outer: inner'],
  [hostile, 'kept'],
  ['text', 'text'],
  [undefined, 'undefined'],
])('%o is described', (error, text) => {
  expect(describeCauses(error)).toBe(text)
})

test('a failed connection is a sentence with the code, without the address', async () => {
  const unreachable = await fetch('http://localhost:1', { redirect: 'error' }).catch((error: unknown) => error)
  expect(describeConnectionFailure('Vault', failed)).toBe('Vault refused the connection (ECONNREFUSED).')
  expect(describeConnectionFailure('It', new AggregateError([refused]))).toContain('refused the connection')
  const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' })
  expect(describeConnectionFailure('It', expired)).toBe('It has a certificate that has expired (CERT_HAS_EXPIRED).')
  const handshake = Object.assign(new Error('wrong version number'), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' })
  expect(describeConnectionFailure('It', handshake)).toMatch(/^It did not complete the TLS handshake/)
  // fetch refuses the port by itself.
  expect(describeConnectionFailure('It', unreachable)).toBeUndefined()
  expect(describeConnectionFailure('It', Object.assign(new Error('no'), { code: 'constructor' }))).toBeUndefined()
})
