/** Writes `types.ts`: the TypeScript types of a document, by openapi-typescript. */
import openapiTypescript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript'
import { type Document, listOperations, type ResponseObject, resolve } from '../../openapi/document.ts'

export async function writeTypes(document: Document): Promise<string> {
  return COMMENT_HEADER + astToString(await openapiTypescript(withInlineHeaders(document) as unknown as OpenAPI3))
}

/** openapi-typescript takes every response header behind a $ref for required; this puts the headers themselves there. */
function withInlineHeaders(document: Document): Document {
  const copy = structuredClone(document)
  const responses = listOperations(copy).flatMap(({ operation }) => Object.values(operation.responses))
  for (const response of [...responses, ...Object.values(copy.components.responses ?? {})]) {
    const { headers = {} } = response as ResponseObject
    for (const [name, header] of Object.entries(headers)) headers[name] = resolve(copy, header)
  }
  return copy
}
