import { expect, test } from 'vitest'
import { library } from './library.ts'
import { mount } from './served.ts'

type Library = ReturnType<typeof library>

/** The error of the start with the changed document. */
async function refusal(change: (document: Library) => unknown): Promise<string> {
  const document = library()
  change(document)
  return mount({ document }).then(
    () => 'started',
    (error: Error) => error.message,
  )
}

const getOperation = (document: Library) => document.paths['/books/{bookId}'].get as Record<string, unknown>
const responses = (document: Library) => document.paths['/books/{bookId}'].get.responses as Record<string, unknown>
const parameter = (more: object) => ({ name: 'x', in: 'query', schema: { type: 'string' }, ...more })
const limitedTo = (limit: unknown) => ({
  requestBody: { 'x-body-bytes-max': limit, content: { 'application/json': {} } },
})
const bodyOf = (schema: object) => ({ requestBody: { content: { 'application/json': { schema } } } })

test('a complete document starts', async () => {
  expect(await refusal(() => {})).toBe('started')
})

test.each<[string, (document: Library) => unknown, string]>([
  [
    'an operation has no operationId',
    (it) => delete getOperation(it).operationId,
    'GET /books/{bookId} has no operationId.',
  ],
  [
    'an operationId is used twice',
    (it) => (getOperation(it).operationId = 'getBest'),
    'The operationId getBest is used twice.',
  ],
  [
    'an operation has no handler',
    (it) => (getOperation(it).operationId = 'takeBook'),
    'The operation takeBook has no handler.',
  ],
  [
    'a handler has no operation',
    (it) => Reflect.deleteProperty(it.paths, '/books/best'),
    'The handler getBest has no operation.',
  ],
  [
    'a secured operation has no 401',
    (it) => delete responses(it)[401],
    'getBook does not document 401, which it can send.',
  ],
  [
    'a secured operation has no 403',
    (it) => delete responses(it)[403],
    'getBook does not document 403, which it can send.',
  ],
  ['an operation has no 503', (it) => delete responses(it)[503], 'getBook does not document 503, which it can send.'],
  [
    'an operation has no security requirement',
    (it) => (getOperation(it).security = []),
    'getBook must have exactly one security requirement.',
  ],
  [
    'an operation has a second security requirement that no parameter needs',
    (it) => (getOperation(it).security = [{ key: ['books:read'] }, { key: ['books:read', 'books:write'] }]),
    'getBook must have exactly one security requirement.',
  ],
  [
    'the scopes of a parameter are in no security requirement',
    (it) => (getOperation(it).parameters = [parameter({ 'x-required-scopes': ['books:write'] })]),
    'getBook must have a second security requirement with the scopes of its parameters.',
  ],
  [
    'a response has no single status',
    (it) => (responses(it).default = {}),
    'The response default of getBook has no single status; document each status.',
  ],
  [
    'a response has a media range',
    (it) => (responses(it)[200] = { content: { 'image/*': {} } }),
    'The response 200 of getBook is image/*; document each media type.',
  ],
  [
    'a $ref leads nowhere',
    (it) => (responses(it)[200] = { $ref: '#/components/responses/No' }),
    'does not have #/components/responses/No.',
  ],
  [
    'a path parameter is not documented',
    (it) => (it.paths['/books/{bookId}'].parameters = []),
    'does not document its path parameter bookId.',
  ],
  [
    'a parameter is in a cookie',
    (it) => (getOperation(it).parameters = [parameter({ in: 'cookie' })]),
    'is in cookie, which is not served.',
  ],
  [
    'a parameter is an object',
    (it) => (getOperation(it).parameters = [parameter({ schema: { type: 'object' } })]),
    'is of type object',
  ],
  [
    'a parameter has a style',
    (it) => (getOperation(it).parameters = [parameter({ style: 'pipeDelimited' })]),
    'does not have the default style',
  ],
  [
    'the text of 401 is not constant',
    (it) => (it.components.responses.Unauthorized.content['text/plain'].schema.const = undefined as never),
    'The response 401 of listBooks must be a text/plain const.',
  ],
  [
    'a problem requires a member that is not sent',
    (it) => (it.components.schemas.Problem.required = ['hint']),
    'The response 400 of listBooks differs from the one that is sent: /hint is required.',
  ],
  [
    'a body is not JSON',
    (it) => Object.assign(getOperation(it), { requestBody: { content: { 'text/csv': {} } } }),
    'The body of getBook is text/csv; only JSON, and `*/*` alone, are served.',
  ],
  ...[0, -1, 1.5, '5242880', null, 1e300].map((limit): [string, (document: Library) => unknown, string] => [
    `the limit of a body is ${JSON.stringify(limit)}`,
    (it) => Object.assign(getOperation(it), limitedTo(limit)),
    'The x-body-bytes-max of getBook must be a positive integer.',
  ]),
  // express-openapi-validator fails on every request with these.
  [
    'a body refers into $defs of another schema',
    (it) => Object.assign(getOperation(it), bodyOf({ $ref: '#/components/schemas/Book/$defs/no' })),
    'Book/$defs/no',
  ],
  [
    'a body has a tuple without minItems',
    (it) => Object.assign(getOperation(it), bodyOf({ type: 'array', prefixItems: [{}], items: false })),
    '"prefixItems" is 1-tuple',
  ],
  [
    'a response has a tuple without minItems',
    (it) => Object.assign(it.components.schemas.Shelf, { prefixItems: [{}], items: false }),
    '"prefixItems" is 1-tuple',
  ],
  ['its OpenAPI version is not 3.1', (it) => (it.openapi = '3.2.0'), 'The document of the library cannot be served.'],
])('the start fails with one sentence when %s', async (_what, change, sentence) => {
  const message = await refusal(change)
  expect(message).toContain('The document of the library cannot be served. ')
  expect(message).toContain(sentence)
})
