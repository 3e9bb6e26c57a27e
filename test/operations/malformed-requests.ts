/** Invalid requests that several tests send: bodies, credentials, paths, methods, malformed HTTP. */
import { expect } from 'vitest'
import { good, json } from './expect-refused.ts'

/** The body with these variables, as JSON text. */
export const variables = (text: string) => `{"variableData":{${text}}}`
/** A valid body with another member in front. */
export const withMember = (text: string) => `{${text},${good.slice(1)}`
const latin1 = (text: string) => Buffer.from(text, 'latin1')
/** Nested objects and arrays; the outermost three are members of the body. */
export const nested = (depth: number) => {
  const arrays = '['.repeat(depth - 3) + ']'.repeat(depth - 3)
  return variables(`"token":"very secret","fails":true,"nested":{"x":${arrays}}`)
}

export const runs = 'GET /v1/execution/runs HTTP/1.1\r\nHost: x\r\n'
export const put = 'PUT /v1/execution/queue-remote/greet HTTP/1.1\r\nHost: x\r\n'

/** For operations that require a body. */
export const absentBodies: [what: string, request: { body?: string }][] = [
  ['that is absent', {}],
  ['that is empty', { body: '' }],
  ['of a byte order mark alone', { body: '\uFEFF' }],
]

export const notJson: [what: string, body: string][] = [
  ['white space alone', ' \r\n\t'],
  ['two values', good + good],
  ['half a value', good.slice(0, -1)],
  ['a trailing comma', '{"variableData":{"name":"Ada"},}'],
  ['single quotes', "{'variableData':{}}"],
  ['a comment', `/**/${good}`],
  ['NaN', variables('"warmth":NaN')],
  ['a line break in a string', variables('"name":"A\nda"')],
  ['the byte 0 in a string', variables('"name":"A\0da"')],
]

export const notUtf8: [what: string, body: Buffer][] = [
  ['an invalid byte', latin1(variables('"name":"\xff"'))],
  ['an overlong form', latin1(variables('"name":"\xc0\x80"'))],
  ['an encoded surrogate', latin1(variables('"name":"\xed\xa0\x80"'))],
  ['a character that is cut off', latin1(variables('"name":"\xe2\x82"'))],
  ['UTF-16 instead', Buffer.from(`\uFEFF${good}`, 'utf16le')],
]

/** JSON that the documents refuse anywhere in a body. */
export const refusedJson: [what: string, body: string, pointer: unknown, detail: string][] = [
  ['U+0000 in a string', variables('"name":"A\\u0000da"'), '/variableData/name', 'must not contain U+0000'],
  ['U+0000 in a name', variables('"a\\u0000b":1'), '/variableData/a\0b', 'is a name that must not contain U+0000'],
  ['half a surrogate pair', variables('"name":"\\ud83d"'), '/variableData/name', 'must not contain a lone surrogate'],
  [
    'a reversed pair',
    variables('"tags":["\\udca1\\ud83d"]'),
    '/variableData/tags/0',
    'must not contain a lone surrogate',
  ],
  [
    'half a pair in a name',
    variables('"\\ud800":1'),
    expect.any(String),
    'is a name that must not contain a lone surrogate',
  ],
  [
    'a number beyond a double',
    variables('"warmth":1e400'),
    '/variableData/warmth',
    'must be within the range of a double',
  ],
  [
    'a negative number beyond a double',
    variables('"warmth":-1e400'),
    '/variableData/warmth',
    'must be within the range of a double',
  ],
  [
    'an integer that a double cannot hold',
    variables('"orderId":9007199254740993'),
    '/variableData/orderId',
    'is an integer that a double cannot hold: send it as a string',
  ],
  ['a member __proto__', withMember('"__proto__":{}'), '/__proto__', 'is not allowed'],
  ['a variable __proto__', variables('"__proto__":{"x":1}'), '/variableData/__proto__', 'is not allowed'],
  ['an escaped __proto__', variables('"\\u005f_proto__":1'), '/variableData/__proto__', 'is not allowed'],
  [
    'constructor.prototype',
    variables('"constructor":{"prototype":1}'),
    '/variableData/constructor',
    'must not have a member prototype',
  ],
  ['two members of one name', withMember('"variableData":{}'), '', 'must not have two members of the same name'],
]

/** Headers of a body that is refused unread. */
export const unsupportedBodies: [what: string, headers: string[]][] = [
  ['without a Content-Type', []],
  ['with an empty Content-Type', ['Content-Type', '']],
  ['of text', ['Content-Type', 'text/plain']],
  ['of XML', ['Content-Type', 'application/xml']],
  ['in UTF-16', ['Content-Type', 'application/json; charset=utf-16']],
  ['of two kinds', ['Content-Type', 'application/json, text/plain']],
  ['with the content coding gzip', [...json, 'Content-Encoding', 'gzip']],
  ['with two content codings', [...json, 'Content-Encoding', 'identity, br']],
]

const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
const above = ['/', '/v1', '/v1/execution', '/v1/execution/queue-remote']
const slashes = [
  '/v1/execution/runs/',
  `/v1/execution/runs/${id}/`,
  `/v1/execution/runs/${id}/events/`,
  '/v1/execution/queue-remote/',
]
const empty = ['//v1/execution/runs', '/v1//execution/runs', '/v1/execution/runs//events']
const dots = ['/v1/execution/./runs', '/v1/execution/x/../runs', '/v1/execution/runs%2F', '/v1/execution/%72uns']
const others = ['/V1/execution/runs', '/v1/Execution/runs', '/v2/execution/runs', '/v1/execution/queue-remote/a/b']
const otherSurfaces = ['/alpha/browser-contexts', '/metrics', '/livez', '/sign-in']

/** For the Execution API. */
export const unknownPaths = [...above, ...slashes, ...empty, ...dots, ...others, ...otherSurfaces]

export const unknownMethods: [method: string, path: string, allow: string][] = [
  ['POST', '/v1/execution/queue-remote/greet', 'PUT'],
  ['GET', '/v1/execution/queue-remote/greet', 'PUT'],
  ['OPTIONS', '/v1/execution/queue-remote/greet', 'PUT'],
  ['POST', '/v1/execution/runs', 'GET, HEAD'],
  ['PUT', `/v1/execution/runs/${id}`, 'GET, HEAD, DELETE'],
  ['GET', `/v1/execution/runs/${id}/cancel`, 'POST'],
  ['POST', `/v1/execution/runs/${id}/events`, 'GET, HEAD'],
  ['PATCH', '/v1/execution/workflows', 'GET, HEAD'],
  ['TRACE', '/v1/execution/workflows', 'GET, HEAD'],
  ['PROPFIND', '/v1/execution/workflows', 'GET, HEAD'],
  ['QUERY', '/v1/execution/workflows/greet', 'GET, HEAD'],
  ['PUT', '/alpha/browser-contexts', 'GET, HEAD, POST'],
  ['OPTIONS', '/alpha/browser-contexts', 'GET, HEAD, POST'],
  ['POST', `/alpha/browser-contexts/${id}`, 'GET, HEAD, PATCH, DELETE'],
]

const one = ['X-Large', 'a'.repeat(20_480)]
const many = Array.from({ length: 1280 }, (_, index) => [`X-${index}`, 'a'.repeat(8)]).flat()

export const largeHeaders: [what: string, request: { path: string; headers: string[] }][] = [
  ['one header', { path: '/v1/execution/runs', headers: one }],
  ['many headers', { path: '/v1/execution/runs', headers: many }],
  ['the path', { path: `/${'a'.repeat(20_480)}`, headers: [] }],
]

export const notHttp: [what: string, text: string][] = [
  ['words', 'Good morning!\r\n\r\n'],
  ['a TLS handshake', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['an unknown method', 'BREW /v1/execution/runs HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a method in lower case', 'get /v1/execution/runs HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an unknown version', 'GET /v1/execution/runs HTTP/9.9\r\nHost: x\r\n\r\n'],
  ['a request without Host', 'GET /v1/execution/runs HTTP/1.1\r\n\r\n'],
  ['two Host headers', `${runs}Host: x\r\n\r\n`],
  ['a Host with a path', 'GET /v1/execution/runs HTTP/1.1\r\nHost: x/y\r\n\r\n'],
  ['a space in the path', 'GET /v1/execution/runs x HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a letter outside ASCII in the path', 'GET /v1/execution/workflows/\xe4 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a header without a colon', `${runs}Nonsense\r\n\r\n`],
  ['a space before the colon', `${runs}X-Y : z\r\n\r\n`],
  ['the byte 0 in a header', `${runs}X-Y: a\0b\r\n\r\n`],
  ['a folded header', `${runs}X-Y: a\r\n b\r\n\r\n`],
  ['a length that is not a number', `${put}Content-Length: five\r\n\r\n`],
  ['a negative length', `${put}Content-Length: -1\r\n\r\n`],
  ['two lengths', `${put}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
  ['a length and chunks', `${put}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['chunks and another coding', `${put}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
]

/** For the Execution API. */
export const badCredentials: [what: string, headers: (key: string) => string[]][] = [
  ['that is absent', () => []],
  ['without a scheme', (key) => ['Authorization', key]],
  ['after a tab', (key) => ['Authorization', `Bearer\t${key}`]],
  ['with trailing text', (key) => ['Authorization', `Bearer ${key} ${key}`]],
  ['in a list', (key) => ['Authorization', `Bearer ${key}, Bearer ${key}`]],
  ['in another scheme', (key) => ['Authorization', `Token ${key}`]],
  ['in Basic authentication', (key) => ['Authorization', `Basic ${btoa(`${key}:${key}`)}`]],
  ['in the header of the other API', (key) => ['x-service-api-key', key]],
  ['that is sent twice', (key) => ['Authorization', `Bearer ${key}`, 'Authorization', `Bearer ${key}`]],
  ['that is sent twice under one name', (key) => ['Authorization', `Bearer ${key}`, 'authorization', `Bearer ${key}`]],
]

/** Unusual but valid. */
export const acceptedCredentials: [what: string, headers: (key: string) => string[]][] = [
  ['with its scheme in lower case', (key) => ['authorization', `bearer ${key}`]],
  ['in upper case', (key) => ['AUTHORIZATION', `BEARER ${key.toUpperCase()}`]],
  ['after two spaces', (key) => ['Authorization', `Bearer  ${key}`]],
  ['with the header of the other API', (key) => ['x-service-api-key', key, 'Authorization', `Bearer ${key}`]],
]
