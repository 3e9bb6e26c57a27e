/** Has Prism choose an operation's answer from its document: the status, the example, the media type, the headers. */
import { createInstance, getHttpOperationsFromSpec, type IHttpOperationConfig } from '@stoplight/prism-http'
import type { IHttpOperation } from '@stoplight/types'
import type { Logger } from 'pino'
import type { Document } from '../../openapi/document.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import { shortened } from './made-up.ts'

/** What the document has for a status, and what Prism has made of it. */
export interface Chosen {
  status: number
  mediaType: string | undefined
  headers: Record<string, string>
  body: unknown
}

export interface Prism {
  /** The names of the examples that the document gives the operation, by status. */
  examples(operation: Operation): Map<number, string[]>
  /** Every response header that the document names. */
  headers: string[]
  /** @param pageLength how many items a page has whose values are made up. */
  choose(
    operation: Operation,
    accept: string | undefined,
    choice: IHttpOperationConfig,
    pageLength: number | undefined,
  ): Promise<Chosen>
}

/** Only errors are of use: whatever else Prism says of a request, the log of the request says already. */
const silent = () => {}
const logger = {
  ...{ level: 'silent', trace: silent, debug: silent, info: silent, success: silent, warn: silent, error: silent },
  child: () => logger,
} as unknown as Logger

// The request has been validated in front; `errors` is for proxies.
const settings = { isProxy: false, checkSecurity: false, validateRequest: false, errors: false } as const

/** Half of the numbers that Prism makes up for `exclusiveMinimum: 0` are 0, which it then says does not fit. */
const dynamicTriesMax = 50

export async function startPrism(document: Document): Promise<Prism> {
  // A copy, because Prism resolves references in place.
  const httpOperations = await getHttpOperationsFromSpec(structuredClone(document))
  const config = { ...settings, validateResponse: true, upstreamProxy: undefined, mock: { dynamic: false } }
  const prism = createInstance(config, { logger: logger as never })
  const of = ({ id }: Operation) => httpOperations.find(({ iid }) => iid === id) as IHttpOperation
  const names = httpOperations.flatMap(({ responses }) => responses.flatMap(({ headers = [] }) => headers))
  return {
    headers: [...new Set(names.map(({ name }) => name))],
    examples: (operation) =>
      new Map(
        of(operation).responses.map(({ code, contents = [] }) => {
          return [Number(code), contents.flatMap(({ examples = [] }) => examples.map(({ key }) => key))]
        }),
      ),
    async choose(operation, accept, mock, pageLength) {
      const path = operation.path.replaceAll(/\{[^}]+\}/g, 'x')
      const method = operation.method.toLowerCase() as 'get'
      const request = { method, url: { path }, headers: accept === undefined ? {} : { accept } }
      const chosenFrom = mock.dynamic ? shortened(of(operation), pageLength) : of(operation)
      for (let tries = 1; ; tries++) {
        const result = await prism.request(request, [chosenFrom], { ...config, mock: { ...mock } })()
        if (result._tag === 'Left') throw result.left
        const { output, validations } = result.right
        const [violation] = validations.output
        const { statusCode: status, headers = {}, body } = output
        if (!violation) return { status, mediaType: headers['Content-type'], headers, body }
        if (!mock.dynamic || tries === dynamicTriesMax)
          throw new Error(`What Prism chose does not fit the document: ${violation.message}`)
      }
    },
  }
}
