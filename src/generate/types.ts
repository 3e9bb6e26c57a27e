/** Writes `types.ts`: the TypeScript types of a document, by openapi-typescript. */
import openapiTypescript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript'
import type { Document } from './document.ts'

export async function writeTypes(document: Document): Promise<string> {
  return COMMENT_HEADER + astToString(await openapiTypescript(structuredClone(document) as unknown as OpenAPI3))
}
