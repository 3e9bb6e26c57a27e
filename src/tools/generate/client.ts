/** Writes `client.ts`: a typed function for each operationId, and what the published client must know to call it. */
import type { OperationDescription, RetryRule } from '../../client/operation.ts'
import {
  type Document,
  type DocumentName,
  type DocumentOperation,
  documentHash,
  listOperations,
  type OperationObject,
  type ResponseObject,
  resolve,
} from '../../openapi/document.ts'
import { docComment, documentText, typeName } from './document.ts'

export function writeClient(document: Document, name: DocumentName): string {
  const operations = listOperations(document)
  const members = operations.map((it) => {
    const id = it.operation.operationId
    const readAs = parseAs(document, it.operation)
    return `${docComment(it, '  ')}\n  ${id}: Operation<operations, '${id}'${readAs === 'json' ? '' : `, '${readAs}'`}>`
  })
  const type = `${typeName(name)}Operations`
  const { title, version } = document.info
  return `// Written by \`npm run generate\` from openapi/${name}.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** What a service that follows the same document sends as \`X-Document-Hash\`. */
export const documentHash = '${documentHash(documentText(document))}'

/** Every operation of ${title} ${version} as a function. */
export interface ${type} {
${members.join('\n')}
}

/** How the operations of ${title} ${version} are called. */
export const ${type.charAt(0).toLowerCase()}${type.slice(1)}: SurfaceDescription<${type}> = {
  document: '${name}',
  documentHash,
  credential: (apiKey) => ({ ${credential(document)} }),
  operations: {
${operations.map((it) => `    ${it.operation.operationId}: ${literal(description(document, it))},`).join('\n')}
  },
}
`
}

function credential(document: Document): string {
  const [scheme] = Object.values(document.components.securitySchemes ?? {}) as { type: string; name?: string }[]
  if (scheme?.type === 'http') return 'Authorization: `Bearer ${apiKey}`'
  return `'${scheme?.name}': apiKey`
}

function description(document: Document, it: DocumentOperation): OperationDescription {
  const method = it.method.toUpperCase() as OperationDescription['method']
  const readAs = parseAs(document, it.operation)
  return { method, path: it.path, retry: retryRule(it), ...(readAs !== 'json' && { parseAs: readAs }) }
}

/** RFC 9110, section 9.2.2. */
const idempotentMethods = ['get', 'put', 'delete']

/** A PUT that takes an Idempotency-Key would not need one if it were idempotent. */
function retryRule({ method, operation, parameters }: DocumentOperation): RetryRule {
  if (parameters.some((each) => each.in === 'header' && each.name === 'Idempotency-Key')) return 'withIdempotencyKey'
  const isIdempotent = idempotentMethods.includes(method) || operation['x-idempotent'] === true
  return isIdempotent ? 'always' : 'ifRefused'
}

/** Events are read as they come, files as bytes; all else is JSON, or nothing. */
function parseAs(document: Document, { responses }: OperationObject): NonNullable<OperationDescription['parseAs']> {
  const answered = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const mediaTypes = answered.flatMap(([, response]) =>
    Object.keys(resolve<ResponseObject>(document, response).content ?? {}),
  )
  if (mediaTypes.includes('text/event-stream')) return 'stream'
  return mediaTypes.every((mediaType) => mediaType === 'application/json') ? 'json' : 'blob'
}

/** As the source of a literal on one line. */
function literal(members: object): string {
  const entries = Object.entries(members).map(([name, value]) => `${name}: '${value}'`)
  return `{ ${entries.join(', ')} }`
}
