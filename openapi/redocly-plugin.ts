/**
 * A plugin of Redocly that adds to the documents what every operation shares, before they are linted and bundled: the
 * headers of each response, and the responses of the stages before a handler, with examples that fit the operation. A
 * response that an operation states itself stays as it is.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** A part of a document as it is written in YAML. */
// biome-ignore lint/suspicious/noExplicitAny: the linter checks its structure afterwards
type Node = Record<string, any>

/** The responses of the shared file, with references as they read in a document. */
function readShared(): Record<string, Node> {
  const responses = parse(readFileSync(new URL('shared/responses.yaml', import.meta.url), 'utf8'))
  return JSON.parse(JSON.stringify(responses).replaceAll('"$ref":"./', '"$ref":"./shared/'))
}

const shared = readShared()
const header = (name: string) => ({ $ref: `./shared/headers.yaml#/${name}` })
const ofEveryResponse = { 'X-Request-Id': header('XRequestId'), 'X-Document-Hash': header('XDocumentHash') }
const ofEveryKnownKey = { RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') }

export default function executionService() {
  return { id: 'execution-service', preprocessors: { oas3: { complete: () => ({ Root: { enter: complete } }) } } }
}

const methods = ['get', 'put', 'post', 'patch', 'delete']

function complete(document: Node): void {
  document.components.responses ??= {}
  const components: Record<string, Node> = document.components.responses
  for (const item of Object.values<Node>(document.paths))
    for (const operation of methods.flatMap((method): Node[] => item[method] ?? [])) {
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])]
      for (const [status, name, response] of sharedResponses(document, operation, parameters)) {
        components[name] ??= response
        operation.responses[status] = { $ref: `#/components/responses/${name}` }
      }
      for (const response of Object.values<Node>(operation.responses)) addHeaders(response)
    }
  for (const response of Object.values(components)) addHeaders(response)
}

/** The shared responses that the operation refers to or does not state, as entries of status, component and response. */
function sharedResponses(
  document: Node,
  { responses, requestBody }: Node,
  parameters: readonly Node[],
): [status: number, name: string, response: Node][] {
  const missing = (status: number, name: string, response = shared[name] as Node): [number, string, Node][] =>
    responses[status] ? [] : [[status, name, response]]
  const referred = Object.entries<Node>(responses).flatMap(([status, { $ref }]): [number, string, Node][] => {
    const name = /^\.\/shared\/responses\.yaml#\/(\w+)$/.exec($ref)?.[1]
    return name ? [[Number(status), name, shared[name] as Node]] : []
  })
  const hasContent = Object.entries<Node>(responses).some(([status, { content }]) => Number(status) < 300 && content)
  const bytesMax: number | undefined = requestBody?.['x-body-bytes-max']
  const noun: string | undefined = responses[404]?.['x-no-such']
  return [
    ...referred,
    ...missing(400, ...invalidRequest(document, requestBody, parameters)),
    ...missing(401, 'Unauthorized'),
    ...missing(403, 'Forbidden'),
    ...(noun ? [notFound(noun)] : []),
    ...(hasContent ? missing(406, 'NotAcceptable') : []),
    ...(bytesMax ? missing(413, ...contentTooLarge(bytesMax / 1024 / 1024)) : []),
    ...(bytesMax ? missing(415, 'UnsupportedMediaType') : []),
    ...missing(429, 'TooManyRequests'),
    ...missing(500, 'InternalError'),
    ...missing(503, 'Unavailable'),
  ]
}

/** The example names a place that the operation has. */
function invalidRequest(document: Node, body: Node | undefined, parameters: readonly Node[]): [string, Node] {
  const withErrors = (error: Node) => withExample('InvalidRequest', { errors: [error] })
  if (body) return ['InvalidBody', withErrors({ pointer: '/colour', detail: 'is not a documented member' })]
  const names = parameters.map(({ $ref, name }) => name ?? document.components.parameters[$ref.split('/').at(-1)]?.name)
  if (names.includes('limit')) return ['InvalidLimit', withErrors({ parameter: 'limit', detail: 'must be <= 100' })]
  const unknown = { parameter: 'colour', detail: 'is not a parameter of this operation' }
  return ['InvalidParameter', withErrors(unknown)]
}

/** @param noun such as `browser context`, for `NoBrowserContext`. */
function notFound(noun: string): [number, string, Node] {
  const capitalized = noun.replaceAll(/(?:^| )(\w)/g, (_, letter: string) => letter.toUpperCase())
  return [404, `No${capitalized}`, withExample('NotFound', { detail: `No such ${noun} in this account.` })]
}

function contentTooLarge(megabytes: number): [string, Node] {
  const example = { detail: `The body may have at most ${megabytes * 1024 * 1024} bytes.` }
  const description = `The body is larger than ${megabytes} MiB. Nothing was stored.`
  return [`LargerThan${megabytes}MiB`, { ...withExample('ContentTooLarge', example), description }]
}

function withExample(name: string, members: Node): Node {
  const response = shared[name] as Node
  const media = response.content['application/problem+json']
  const content = { 'application/problem+json': { ...media, example: { ...media.example, ...members } } }
  return { ...response, content }
}

/** A response to a bad key has no limit of one. */
function addHeaders(response: Node): void {
  if (response.$ref) return
  const isOfKey = !response.headers?.['WWW-Authenticate']
  response.headers = { ...ofEveryResponse, ...(isOfKey && ofEveryKnownKey), ...response.headers }
}
