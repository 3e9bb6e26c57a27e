/** Writes `server.ts`: the interface that a server of the document implements, a typed handler for each operationId. */
import { type Document, type DocumentName, listOperations } from '../../openapi/document.ts'
import { docComment, typeName } from './document.ts'

export function writeServer(document: Document, name: DocumentName): string {
  const members = listOperations(document).map((it) => {
    const id = it.operation.operationId
    const defaults = it.parameters.filter((each) => each.in === 'query' && each.schema.default !== undefined)
    const filled = defaults.map((each) => `'${each.name}'`).join(' | ') || 'never'
    return `${docComment(it, '  ')}\n  ${id}: Handler<operations['${id}'], ${filled}, Principal>`
  })
  return `// Written by \`npm run generate\` from openapi/${name}.yaml. Do not edit.
import type { Handler } from '../../src/contract/handler.ts'
import type { operations } from './types.ts'

/** What a server of ${document.info.title} ${document.info.version} implements. Query parameters with a default are always there. */
export interface ${typeName(name)}Handlers<Principal> {
${members.join('\n')}
}
`
}
