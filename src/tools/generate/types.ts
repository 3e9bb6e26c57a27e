/** Writes `types.ts`: the TypeScript types of a document, by openapi-typescript. */
import openapiTypescript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript'
import { type Document, operationsOf } from './document.ts'

export async function writeTypes(document: Document): Promise<string> {
  return COMMENT_HEADER + astToString(await openapiTypescript(withInlineHeaders(document) as unknown as OpenAPI3))
}

type Headers = Record<string, { $ref?: string }>

/** openapi-typescript takes every response header behind a $ref for required; this puts the headers themselves there. */
function withInlineHeaders(document: Document): Document {
  const copy = structuredClone(document)
  const responses = operationsOf(copy).flatMap(({ operation }) => Object.values(operation.responses))
  for (const response of [...responses, ...Object.values(copy.components.responses ?? {})]) {
    const { headers = {} } = response as { headers?: Headers }
    for (const [name, { $ref }] of Object.entries(headers)) {
      const found = $ref && copy.components.headers?.[$ref.replace('#/components/headers/', '')]
      if (found) headers[name] = found
    }
  }
  return copy
}
