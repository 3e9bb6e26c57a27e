/** A small document about books, for the tests of the framework. */
import type { Document } from '../../src/openapi/document.ts'

const json = (name: string) => ({ 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } })
const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

/** An operation with the responses of the framework and the given ones. */
export function operation(operationId: string, responses: object, more: object = {}) {
  const problems = [400, 404, 406, 409, 413, 415, 429, 500, 503].map((status) => [status, ref('responses', 'Problem')])
  return {
    operationId,
    security: [{ key: ['books:read'] }],
    responses: {
      ...Object.fromEntries(problems),
      401: ref('responses', 'Unauthorized'),
      403: ref('responses', 'Forbidden'),
      ...responses,
    },
    ...more,
  }
}

const book = { 200: { description: 'A book.', content: json('Book') } }
const none = { 204: { description: 'Nothing.' } }
const write = { security: [{ key: ['books:write'] }] }
const bookId = { name: 'bookId', in: 'path', required: true, schema: { type: 'string', pattern: '^[a-z0-9/]+$' } }

const filters = [
  { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
  { name: 'tag', in: 'query', schema: { type: 'array', items: { type: 'string', enum: ['new', 'old'] } } },
  { name: 'since', in: 'query', schema: { type: 'string', format: 'date-time' } },
  { name: 'owner', in: 'query', schema: { type: 'string', format: 'uuid' } },
  { name: 'Book-Note', in: 'header', schema: { type: 'string', pattern: '^[a-z]+$' } },
]

const events = {
  type: 'string',
  contentMediaType: 'application/json',
  contentSchema: ref('schemas', 'Turned'),
}

/** A new copy of the document, which the caller may change. */
export function library() {
  return {
    openapi: '3.1.1',
    info: { title: 'Library', version: '1.0.0', summary: 'Lends books.', description: 'Lends books.' },
    servers: [{ url: 'https://library.example/somewhere', description: 'A server.' }],
    tags: [],
    security: [{ key: [] }],
    paths: {
      '/books': {
        get: operation(
          'listBooks',
          { 200: { description: 'Books.', content: json('Shelf') } },
          { parameters: filters },
        ),
        post: operation('openBook', none, { ...write, requestBody: { content: json('Opening') } }),
      },
      '/books/best': { get: operation('getBest', book) },
      '/books/{bookId}': {
        parameters: [bookId],
        get: operation('getBook', book),
        put: operation('putBook', located(201), { ...write, requestBody: { required: true, content: json('Book') } }),
        delete: operation('deleteBook', none, write),
      },
      '/books/{bookId}/pages': {
        parameters: [bookId],
        get: operation('readBook', {
          200: { description: 'Events.', content: { 'text/event-stream': { schema: events } } },
        }),
      },
    },
    components: structuredClone(components),
  } satisfies Document & Record<string, unknown>
}

function located(status: number) {
  const header = { required: true, schema: { type: 'string' } }
  const headers = { Location: header, 'X-Request-Id': header, 'Cache-Control': header }
  return { [status]: { description: 'A book.', headers, content: json('Book') } }
}

const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'requestId'],
  additionalProperties: false,
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    requestId: { type: 'string', format: 'uuid' },
    errors: { type: 'array', maxItems: 20 },
  },
}

const components = {
  securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
  responses: {
    Problem: {
      description: 'A problem.',
      content: { 'application/problem+json': { schema: ref('schemas', 'Problem') } },
    },
    Unauthorized: {
      description: 'Who?',
      content: { 'text/plain': { schema: { type: 'string', const: 'Unauthorized' } } },
    },
    Forbidden: { description: 'No.', content: { 'text/plain': { schema: { type: 'string', const: 'Forbidden' } } } },
  },
  schemas: {
    Problem: problem,
    Book: {
      type: 'object',
      required: ['title'],
      additionalProperties: false,
      properties: {
        title: { type: 'string', maxLength: 10 },
        pages: { type: 'integer', minimum: 1, default: 1 },
        printedAt: { oneOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
        notes: { type: 'object', additionalProperties: true },
        author: { type: 'object', additionalProperties: false, properties: { name: { type: 'string' } } },
      },
    },
    Shelf: { type: 'array', items: ref('schemas', 'Book') },
    Opening: {
      oneOf: [ref('schemas', 'AtPage'), ref('schemas', 'AtMark')],
      discriminator: { propertyName: 'at' },
    },
    AtPage: openingAt('page', { page: { type: 'integer' } }),
    AtMark: openingAt('mark', { mark: { type: 'string' } }),
    Turned: {
      type: 'object',
      required: ['page'],
      properties: { page: { type: 'integer' }, text: { type: 'string' } },
    },
  },
}

function openingAt(at: string, properties: object) {
  const all = { at: { type: 'string', const: at }, ...properties }
  return { type: 'object', required: Object.keys(all), additionalProperties: false, properties: all }
}
