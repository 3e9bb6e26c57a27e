/** A bundled OpenAPI 3.1 document, and what the writers need of it. */

import { resolved } from '../../openapi/operations.ts'

/** The documents, by file name in openapi/. Another one is added here and in redocly.yaml. */
export const documentNames = ['execution.v1', 'browser-context.alpha'] as const
export type DocumentName = (typeof documentNames)[number]

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  required?: boolean
  example?: unknown
  schema: { default?: unknown; example?: unknown; enum?: unknown[] }
}

export interface OperationObject {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: Record<string, string[]>[]
  /** Our own: that an operation of a method that is not idempotent may be repeated all the same. */
  'x-idempotent'?: boolean
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { required?: boolean; content: Content; 'x-body-bytes-max'?: number }
  responses: Record<string, { headers?: Record<string, unknown>; content?: Content }>
}

type Content = Record<string, { schema?: { $ref?: string }; examples?: Record<string, unknown> }>

export interface Document {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, unknown>>
  components: Record<string, Record<string, unknown>> & { securitySchemes: Record<string, SecurityScheme> }
}

export interface SecurityScheme {
  type: 'http' | 'apiKey'
  name?: string
}

export interface OperationOfPath {
  path: string
  method: string
  operation: OperationObject
  parameters: Parameter[]
}

const methods = ['get', 'put', 'post', 'delete', 'patch']

/** The document as it is written, served and hashed. */
export function documentText(document: Document): string {
  return `${JSON.stringify(document, null, 2)}\n`
}

/** Every operation of the document, with the parameters of its path and its own, in the document's order. */
export function operationsOf(document: Document): OperationOfPath[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method] as OperationObject | undefined
      if (!operation) return []
      const shared = (item.parameters ?? []) as OperationObject['parameters']
      const parameters = [...(shared ?? []), ...(operation.parameters ?? [])].map((it) => parameter(document, it))
      return [{ path, method, operation, parameters }]
    }),
  )
}

/** What the writers need of every operation beyond what OpenAPI asks for: the first that is missing, as a sentence. */
export function missingIn(document: Document): string | undefined {
  const missing = operationsOf(document).flatMap(({ path, method, operation, parameters }) => {
    const needed = ['operationId', 'tags', 'summary', 'description', 'security'] as const
    const the = operation.operationId ?? `${method.toUpperCase()} ${path}`
    const undescribed = parameters.filter((it) => !it.description).map((it) => `The parameter ${it.name} of ${the}`)
    const body = operation.requestBody && resolved<typeof operation.requestBody>(document, operation.requestBody)
    const unbounded = body && body['x-body-bytes-max'] === undefined ? [`The body of ${the}`] : []
    return [
      ...needed.filter((member) => !operation[member]).map((member) => `${the} has no \`${member}\`; write it.`),
      ...unbounded.map((it) => `${it} has no \`x-body-bytes-max\`; write how many bytes it may have.`),
      ...undescribed.map((it) => `${it} has no \`description\`; write it.`),
    ]
  })
  return missing[0]
}

function parameter(document: Document, it: Parameter | { $ref: string }): Parameter {
  if (!('$ref' in it)) return it
  const name = it.$ref.replace('#/components/parameters/', '')
  const found = document.components.parameters?.[name]
  if (!found) throw new Error(`The document refers to ${it.$ref}, which it does not have.`)
  return found as Parameter
}

/** `execution.v1` → `ExecutionV1`. */
export function typeName(name: DocumentName): string {
  return name
    .split(/[.-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** The operation's summary, description, address and scopes as the text of a doc comment. */
export function docComment({ path, method, operation }: OperationOfPath, indent: string): string {
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
