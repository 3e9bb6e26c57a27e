/** What the writers of generated/ share: the text of a document, what it must have, names and doc comments. */
import {
  type Document,
  type DocumentName,
  type DocumentOperation,
  listOperations,
  type RequestBodyObject,
  resolve,
} from '../../openapi/document.ts'

/** The document as it is written, served and hashed. */
export function documentText(document: Document): string {
  return `${JSON.stringify(document, null, 2)}\n`
}

/** What the writers need of every operation beyond what OpenAPI asks for: the first that is missing, as a sentence. */
export function missingIn(document: Document): string | undefined {
  const missing = listOperations(document).flatMap(({ path, method, operation, parameters }) => {
    const needed = ['operationId', 'tags', 'summary', 'description', 'security'] as const
    const the = operation.operationId ?? `${method.toUpperCase()} ${path}`
    const undescribed = parameters.filter((it) => !it.description).map((it) => `The parameter ${it.name} of ${the}`)
    const body = operation.requestBody && resolve<RequestBodyObject>(document, operation.requestBody)
    const unbounded = body && body['x-body-bytes-max'] === undefined ? [`The body of ${the}`] : []
    return [
      ...needed.filter((member) => !operation[member]).map((member) => `${the} has no \`${member}\`; write it.`),
      ...unbounded.map((it) => `${it} has no \`x-body-bytes-max\`; write how many bytes it may have.`),
      ...undescribed.map((it) => `${it} has no \`description\`; write it.`),
    ]
  })
  return missing[0]
}

/** `execution.v1` → `ExecutionV1`. */
export function typeName(name: DocumentName): string {
  return name
    .split(/[.-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** The operation's summary, description, address and scopes as the text of a doc comment. */
export function docComment({ path, method, operation }: DocumentOperation, indent: string): string {
  const scopes = operation.security.flatMap((requirement) => Object.values(requirement).flat())
  const lines = [
    `${operation.summary.replaceAll('*/', '*\\/')}.`,
    '',
    ...operation.description.trim().replaceAll('*/', '*\\/').split('\n'),
    '',
    `\`${method.toUpperCase()} ${path}\` · scopes: ${scopes.join(', ')} · answers: ${Object.keys(operation.responses).join(', ')}`,
  ]
  return ['/**', ...lines.map((line) => ` * ${line}`.trimEnd()), ' */'].map((line) => indent + line).join('\n')
}
