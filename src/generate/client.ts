/** Writes `client.ts`: a typed function for each operationId over openapi-fetch. */
import { documentHash } from '../contract/document-hash.ts'
import {
  type Document,
  type DocumentName,
  docComment,
  documentText,
  operationsOf,
  type SecurityScheme,
  typeName,
} from './document.ts'

export function writeClient(document: Document, name: DocumentName): string {
  const members = operationsOf(document).map((it) => {
    const { path, method, operation } = it
    const required = it.parameters.some((each) => each.required) || operation.requestBody?.required === true
    const init = `init${required ? '' : '?'}: MaybeOptionalInit<paths['${path}'], '${method}'>`
    const call = `client.${method.toUpperCase()}('${path}', init${required ? '' : ' ?? {}'})`
    return `${docComment(it, '    ')}\n    ${operation.operationId}: (${init}) => ${call},`
  })
  const schemes = Object.values(document.components.securitySchemes)
  return `// Written by \`npm run generate\` from openapi/${name}.yaml. Do not edit.
import createClient, { type ClientOptions, type MaybeOptionalInit, mergeHeaders } from 'openapi-fetch'
import type { paths } from './types.ts'

/** What a service that follows the same document sends as \`X-Document-Hash\`. */
export const documentHash = '${documentHash(documentText(document))}'

/** A client of ${document.info.title} ${document.info.version} that sends \`apiKey\` with every request. */
export function create${typeName(name)}Client({ apiKey, ...options }: ClientOptions & { apiKey: string; baseUrl: string }) {
  const headers = mergeHeaders(options.headers, { ${credential(schemes)} })
  const client = createClient<paths>({ ...options, headers })
  return {
${members.join('\n')}
  }
}
`
}

function credential(schemes: SecurityScheme[]): string {
  const [scheme] = schemes
  if (scheme?.type === 'http') return 'Authorization: `Bearer ${apiKey}`'
  return `'${scheme?.name}': apiKey`
}
