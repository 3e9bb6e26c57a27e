/** Reads the parameters of a request by the names that its operation documents, before their values are validated. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Operation, Parameter } from '../openapi/served-operations.ts'

interface ParameterError {
  parameter: string
  detail: string
}

export interface Parameters {
  path: Record<string, unknown>
  query: Record<string, unknown>
  /** By lower-case name. */
  header: Record<string, unknown>
  /** What is wrong with them already; their values are still strings. */
  errors: ParameterError[]
}

export type ParameterReader = (values: string[], search: string, headers: IncomingHttpHeaders) => Parameters

/** RFC 8259, section 6. Ajv coerces whatever JavaScript's `Number()` takes, such as `0x10`, ` 5`, and `1e400`. */
const number = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/

export function parameterReader({ id, path, parameters }: Operation): ParameterReader {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => named(id, parameters, 'path', name as string))
  const inQuery = new Map(parameters.filter((it) => it.in === 'query').map((it) => [it.name, it]))
  const inHeader = parameters.filter((it) => it.in === 'header').map(({ name }) => name.toLowerCase())
  return (values, search, headers) => {
    const read: Parameters = { path: {}, query: {}, header: {}, errors: [] }
    for (const [index, parameter] of inPath.entries())
      assign(read.path, parameter, values[index] as string, read.errors)
    if (search !== '') readQuery(inQuery, search, read)
    for (const name of inHeader) if (headers[name] !== undefined) read.header[name] = headers[name]
    return read
  }
}

function named(id: string, parameters: Parameter[], place: Parameter['in'], name: string): Parameter {
  const found = parameters.find((it) => it.in === place && it.name === name)
  if (!found) throw new Error(`${id} does not document its ${place} parameter ${name}.`)
  return found
}

/**
 * EOV leaves a repeated or bracketed parameter to its validators, and lets some of them pass (`?limit[=1`). Reserved
 * characters need no escape in a query (RFC 3986, section 3.4): a timestamp may have its colons.
 */
function readQuery(known: Map<string, Parameter>, search: string, { query, errors }: Parameters) {
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const rawName = equals < 0 ? pair : pair.slice(0, equals)
    const name = decoded(rawName.replaceAll('+', ' ')) ?? rawName
    const parameter = known.get(name)
    const value = equals < 0 ? '' : pair.slice(equals + 1).replaceAll('+', ' ')
    if (!parameter) errors.push({ parameter: name, detail: 'is not a parameter of this operation' })
    else assign(query, parameter, value, errors)
  }
}

function assign(values: Record<string, unknown>, { name, schema }: Parameter, raw: string, errors: ParameterError[]) {
  const value = decoded(raw)
  if (value === undefined) errors.push({ parameter: name, detail: 'is not percent-encoded correctly' })
  else if (value.includes('\0')) errors.push({ parameter: name, detail: 'must not contain U+0000' })
  else if (schema.type === 'array') values[name] = [...((values[name] as string[] | undefined) ?? []), value]
  else if (Object.hasOwn(values, name)) errors.push({ parameter: name, detail: 'is given more than once' })
  else if ((schema.type === 'integer' || schema.type === 'number') && !isNumber(value)) {
    errors.push({ parameter: name, detail: `must be ${schema.type}` })
  } else values[name] = value
}

function isNumber(text: string): boolean {
  return number.test(text) && Number.isFinite(Number(text))
}

function decoded(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
