/**
 * Lets Prism choose a response of an operation from its document: example, media type, headers and made-up values. The
 * only file that knows Prism. It gets the operations of the document as they are, except for made-up values: Prism has no
 * option for the length of lists, the size of numbers or the order of times, so `forMadeUpValues` narrows a copy of the
 * schemas, and `moveTimes` sorts the times. A page of a hundred runs took 440 KB without it.
 */
import { createInstance, getHttpOperationsFromSpec, type IHttpOperationConfig } from '@stoplight/prism-http'
import type { IHttpOperation } from '@stoplight/types'
import type { Logger } from 'pino'
import type { Document } from '../../openapi/document.ts'
import type { Operation } from '../../openapi/served-operations.ts'

export interface ChosenResponse {
  status: number
  mediaType: string | undefined
  headers: Record<string, string>
  body: unknown
}

export interface Prism {
  /** Names of the operation's documented examples, by status. */
  listExamples(operation: Operation): Map<number, string[]>
  /** Every response header of the document. */
  headers: string[]
  /** @param pageLength number of items of a made-up page. */
  choose(
    operation: Operation,
    accept: string | undefined,
    choice: IHttpOperationConfig,
    pageLength: number | undefined,
  ): Promise<ChosenResponse>
}

/** Prism's response violates the document, or Prism cannot make up one. */
export class MadeUpError extends Error {}

/** Prism's log adds nothing to the log of requests. */
const ignore = () => {}
const logger = {
  ...{ level: 'silent', trace: ignore, debug: ignore, info: ignore, success: ignore, warn: ignore, error: ignore },
  child: () => logger,
} as unknown as Logger

// Requests were validated before; `errors` only concerns proxies.
const settings = { isProxy: false, checkSecurity: false, validateRequest: false, errors: false } as const

export async function startPrism(document: Document): Promise<Prism> {
  // A copy, because Prism resolves references in place.
  const httpOperations = await getHttpOperationsFromSpec(structuredClone(document))
  const config = { ...settings, validateResponse: true, upstreamProxy: undefined, mock: { dynamic: false } }
  const prism = createInstance(config, { logger: logger as never })
  const findOperation = ({ id }: Operation) => httpOperations.find(({ iid }) => iid === id) as IHttpOperation
  const names = httpOperations.flatMap(({ responses }) => responses.flatMap(({ headers = [] }) => headers))
  return {
    headers: [...new Set(names.map(({ name }) => name))],
    listExamples: (operation) =>
      new Map(
        findOperation(operation).responses.map(({ code, contents = [] }) => {
          return [Number(code), contents.flatMap(({ examples = [] }) => examples.map(({ key }) => key))]
        }),
      ),
    async choose(operation, accept, mock, pageLength) {
      const path = operation.path.replaceAll(/\{[^}]+\}/g, 'x')
      const method = operation.method.toLowerCase() as 'get'
      const request = { method, url: { path }, headers: accept === undefined ? {} : { accept } }
      const source = findOperation(operation)
      const operations = [mock.dynamic ? forMadeUpValues(source, pageLength) : source]
      const result = await prism.request(request, operations, { ...config, mock: { ...mock } })()
      if (result._tag === 'Left') throw mock.dynamic ? new MadeUpError(result.left.message) : result.left
      const { output, validations } = result.right
      const [violation] = validations.output
      if (violation) throw new MadeUpError(`Prism's response violates the document: ${violation.message}`)
      const { statusCode: status, headers = {}, body } = output
      if (mock.dynamic) moveTimes(body)
      return { status, mediaType: headers['Content-type'], headers, body }
    },
  }
}

/** Prism makes lists as long as their schema allows: a hundred runs of twenty artifacts each took 440 KB. */
const itemsMax = 3

/** Maximum of made-up numbers where the schema has none, or a larger one. */
const numberMax = 20

interface Schema {
  type?: unknown
  maximum?: number
  maxItems?: number
  minimum?: number
  exclusiveMinimum?: unknown
  properties?: { data?: Schema; nextCursor?: Schema }
}

/** A copy with pages of the given length, short other lists, and numbers that Prism can make up. */
function forMadeUpValues(operation: IHttpOperation, pageLength = itemsMax): IHttpOperation {
  const copy = structuredClone(operation)
  narrow(copy.responses, new Set())
  for (const { contents = [] } of copy.responses) {
    for (const { schema } of contents) {
      const { data, nextCursor } = (schema as Schema | undefined)?.properties ?? {}
      if (data && nextCursor) data.maxItems = pageLength
    }
  }
  return copy
}

function narrow(value: unknown, seen: Set<object>): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  const schema = value as Schema
  if (typeof schema.maxItems === 'number') schema.maxItems = Math.min(schema.maxItems, itemsMax)
  // Prism makes up 0 for half of the numbers with `exclusiveMinimum: 0`.
  if (typeof schema.exclusiveMinimum === 'number') schema.minimum = schema.exclusiveMinimum + 1
  if (schema.type === 'integer' || schema.type === 'number') {
    const { minimum = 0, maximum = Infinity } = schema
    schema.minimum = minimum
    schema.maximum = Math.min(maximum, Math.max(minimum, 0) + numberMax)
  }
  for (const member of Object.values(value)) narrow(member, seen)
}

const timePattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d/

/** Members of an object in the order in which they happen. */
const timeNames = ['createdAt', 'startedAt', 'lastUsedAt', 'updatedAt', 'finishedAt', 'expiresAt']

/** Moves made-up times, which are of any century, to the weeks before the current hour, and sorts those of an object. */
function moveTimes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  const members = value as Record<string, unknown>
  const hour = Math.floor(Date.now() / hourMilliseconds)
  for (const [name, member] of Object.entries(members)) {
    if (typeof member !== 'string' || !timePattern.test(member)) moveTimes(member)
    else members[name] = new Date(hour * hourMilliseconds - (Math.abs(Date.parse(member)) % timeSpread)).toISOString()
  }
  const names = timeNames.filter((name) => typeof members[name] === 'string')
  const sorted = names.map((name) => members[name]).sort()
  for (const [index, name] of names.entries()) members[name] = sorted[index]
}

const hourMilliseconds = 60 * 60 * 1000
const timeSpread = 14 * 24 * hourMilliseconds
