/**
 * Reads the documents without code of the service, so that tests check responses independently of the service's own
 * validation.
 */
import { readFileSync } from 'node:fs'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'vitest'
import type { operations as BrowserContextOperations } from '../../generated/browser-context.alpha/types.ts'
import type { operations as ExecutionOperations } from '../../generated/execution.v1/types.ts'

/** Without the webhook, which the service sends. */
export type Operations = Omit<ExecutionOperations, 'runFinished' | 'notificationSent'> & BrowserContextOperations
export type OperationId = keyof Operations
/** The documented statuses of the operation. */
export type StatusOf<Id extends OperationId> = keyof Operations[Id]['responses'] & number

export type Surface = 'execution' | 'browserContext'

export type Json = Record<string, unknown>

interface Response {
  description: string
  headers: Record<string, { required?: boolean; pointer: string; example: unknown }>
  /** JSON Pointers of the schemas, by media type. */
  schemas: Record<string, string>
  /** Whether the body is a file, whatever its media type. */
  isFile: boolean
  /** By media type and name. */
  examples: [mediaType: string, name: string, value: unknown][]
}

export interface DocumentedParameter {
  name: string
  in: string
  required?: boolean
  schema: Json
}

export interface DocumentedOperation {
  id: OperationId
  surface: Surface
  method: string
  path: string
  tag: string
  parameters: DocumentedParameter[]
  scopes: string[]
  /** Examples of the request body by name, if there is one. */
  body: Record<string, unknown> | undefined
  bodySchema: Json | undefined
  bodyRequired: boolean
  /** Maximum size of the request body in bytes. */
  bodyBytesMax: number
  responses: Map<number, Response>
}

const files = { execution: 'execution.v1', browserContext: 'browser-context.alpha' } as const

const documents = Object.fromEntries(
  Object.entries(files).map(([surface, name]) => [
    surface,
    JSON.parse(readFileSync(`generated/${name}/document.json`, 'utf8')),
  ]),
) as Record<Surface, Json>

/** Every operation of both documents. */
export const operations: readonly DocumentedOperation[] = (Object.keys(files) as Surface[]).flatMap(read)

export const scopes = [...new Set(operations.flatMap((operation) => operation.scopes))].sort()

export function operationOf(id: OperationId): DocumentedOperation {
  const match = operations.find((operation) => operation.id === id)
  if (!match) throw new Error(`No document has the operation ${id}.`)
  return match
}

function read(surface: Surface): DocumentedOperation[] {
  const document = documents[surface]
  const methods = ['get', 'put', 'post', 'patch', 'delete']
  return Object.entries(document.paths as Record<string, Json>).flatMap(([path, item]) =>
    methods
      .filter((method) => method in item)
      .map((method) => {
        const operation = item[method] as Json
        const pointer = `/paths/${step(path)}/${method}`
        const parameters = [...((item.parameters ?? []) as Json[]), ...((operation.parameters ?? []) as Json[])]
        const requestBody = (operation.requestBody ?? {}) as { content?: Record<string, Json> } & Json
        const { content } = requestBody
        return {
          id: operation.operationId as OperationId,
          surface,
          method: method.toUpperCase(),
          path,
          tag: (operation.tags as string[])[0] ?? '',
          parameters: parameters.map((it) => resolve(surface, it, '').value as unknown as DocumentedParameter),
          scopes: Object.values((operation.security as Record<string, string[]>[])[0] ?? {}).flat(),
          body: content && namedExamples(surface, content['application/json'] ?? content['*/*'] ?? {}),
          bodySchema: content?.['application/json']?.schema as Json | undefined,
          bodyRequired: requestBody.required === true,
          bodyBytesMax: (requestBody['x-body-bytes-max'] as number | undefined) ?? 1024 * 1024,
          responses: readResponses(surface, operation.responses as Json, `${pointer}/responses`),
        }
      }),
  )
}

function readResponses(surface: Surface, responses: Json, at: string): Map<number, Response> {
  return new Map(
    Object.entries(responses).map(([status, it]): [number, Response] => {
      const { value, pointer } = resolve(surface, it, `${at}/${status}`)
      const content = Object.entries((value.content ?? {}) as Record<string, Json>)
      const headers = Object.entries((value.headers ?? {}) as Json).map(([name, header]) => {
        const resolved = resolve(surface, header, `${pointer}/headers/${step(name)}`)
        const { required, example } = resolved.value
        return [name, { required, pointer: `${resolved.pointer}/schema`, example }]
      })
      const examples = content.flatMap(([mediaType, media]) =>
        Object.entries(namedExamples(surface, media)).map(([name, example]) => [mediaType, name, example] as const),
      )
      const schemas = content.map(([mediaType]) => [mediaType, `${pointer}/content/${step(mediaType)}/schema`])
      return [
        Number(status),
        {
          description: value.description as string,
          headers: Object.fromEntries(headers),
          schemas: Object.fromEntries(schemas),
          isFile: content.some(([, media]) => resolve(surface, media.schema, '').value.format === 'binary'),
          examples: examples.map((example) => [...example]),
        },
      ]
    }),
  )
}

function namedExamples(surface: Surface, media: Json): Record<string, unknown> {
  const named = Object.entries((media.examples ?? {}) as Json).map(([name, example]) => [
    name,
    resolve(surface, example, '').value.value,
  ])
  return { ...('example' in media && { example: media.example }), ...Object.fromEntries(named) }
}

function resolve(surface: Surface, value: unknown, pointer: string): { value: Json; pointer: string } {
  const { $ref } = value as { $ref?: string }
  if ($ref === undefined) return { value: value as Json, pointer }
  const steps = $ref.slice(2).split('/')
  const target = steps.reduce<unknown>((holder, key) => (holder as Json)[unescaped(key)], documents[surface])
  return resolve(surface, target, $ref.slice(1))
}

/** The schema, or the target of its `$ref`. */
export function schemaOf(surface: Surface, schema: unknown): Json {
  return resolve(surface, schema, '').value
}

function step(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

function unescaped(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~')
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajvFormats.default(ajv)
for (const [surface, document] of Object.entries(documents)) ajv.addSchema(document, surface)

function validator(surface: Surface, pointer: string): ValidateFunction {
  const validate = ajv.getSchema(`${surface}#${encodeURI(pointer)}`)
  if (!validate) throw new Error(`The document of ${surface} has no schema at ${pointer}.`)
  return validate
}

/** Fails unless the value is valid by the schema at the JSON Pointer of the surface's document. */
export function expectToFit(surface: Surface, pointer: string, value: unknown): void {
  const validate = validator(surface, pointer)
  validate(value)
  expect(validate.errors ?? [], `${JSON.stringify(value)} at ${pointer}`).toEqual([])
}

/** The parts of a response that are compared with the document. */
export interface ReceivedResponse {
  status: number
  /** By lower-case names. */
  headers: Record<string, string | string[] | undefined>
  text: string
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Fails unless the response matches the document; returns its parsed body. */
export function expectDocumented({ id, surface, responses }: DocumentedOperation, received: ReceivedResponse): unknown {
  const { status, headers, text } = received
  const response = responses.get(status)
  if (!response) throw new Error(`${id} responded with ${status}, which is not documented: ${text}`)
  expect(headers['x-request-id']).toMatch(uuidPattern)
  expect(headers['cache-control'], 'responses contain data of one account').toBe('no-store')
  for (const [name, { required, pointer }] of Object.entries(response.headers)) {
    const value = headers[name.toLowerCase()]
    if (required) expect(value, `the header ${name} of ${id} ${status}`).toBeDefined()
    if (value !== undefined) expectToFit(surface, pointer, value)
  }
  const mediaTypes = Object.keys(response.schemas)
  if (mediaTypes.length === 0) {
    expect(text).toBe('')
    return undefined
  }
  const mediaType = String(headers['content-type'])
  expect(mediaTypes).toContain(mediaType)
  const body = mediaType.endsWith('json') && !(response.isFile && status < 300) ? JSON.parse(text) : text
  expectToFit(surface, response.schemas[mediaType] as string, body)
  if (mediaType === 'application/problem+json') {
    // The examples cover each problem type of the operation.
    const kinds = response.examples.map(([, , example]) => pick(example as Json, 'type', 'title', 'status'))
    expect(kinds).toContainEqual(pick(body, 'type', 'title', 'status'))
  }
  if (mediaType === 'text/event-stream') for (const event of eventsIn(text)) expectToFit(surface, runEvent, event.data)
  return body
}

function pick(value: Json, ...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, value[name]]))
}

const runEvent = '/components/schemas/RunEvent'

export interface StreamedEvent {
  id: string
  event: string
  data: { type: string; sequence: number } & Record<string, unknown>
}

/** The events of a complete event stream, without comments (HTML Standard, section 9.2.6). */
export function eventsIn(text: string): StreamedEvent[] {
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))
  return blocks.map((block) => {
    const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)))
    return { id: fields.id, event: fields.event, data: JSON.parse(fields.data) }
  })
}

/** Fails unless the response is the problem, documented, with its own request id. */
export function expectProblem(
  operation: DocumentedOperation | undefined,
  received: ReceivedResponse,
  problem: { kind: string; title: string; status: number; detail?: unknown; errors?: unknown },
): void {
  const { kind, detail = expect.any(String), ...exact } = problem
  expect({ status: received.status, mediaType: received.headers['content-type'] }).toEqual({
    status: problem.status,
    mediaType: 'application/problem+json',
  })
  if (operation) expectDocumented(operation, received)
  const requestId = received.headers['x-request-id']
  expect(requestId).toMatch(uuidPattern)
  expect(JSON.parse(received.text)).toEqual({ type: `/docs/errors#${kind}`, requestId, detail, ...exact })
}
