/** Reads the parameters of a request by their documented names, before their values are validated. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Operation, Parameter } from '../openapi/served-operations.ts'

interface ParameterError {
  parameter: string
  detail: string
}

export interface Parameters {
  path: Record<string, unknown>
  query: Record<string, unknown>
  /** Errors found so far; the values are still strings. */
  errors: ParameterError[]
}

export type ParameterReader = (pathValues: string[], search: string) => Parameters

/** RFC 8259, section 6. Ajv coerces everything that `Number()` takes, such as `0x10`, ` 5` and `1e400`. */
const numberPattern = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/

export function parameterReader({ id, path, parameters }: Operation): ParameterReader {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => {
    const parameter = parameters.find((it) => it.in === 'path' && it.name === name)
    if (!parameter) throw new Error(`${id} does not document its path parameter ${name}.`)
    return parameter
  })
  const inQuery = new Map(parameters.filter((it) => it.in === 'query').map((it) => [it.name, it]))
  return (pathValues, search) => {
    const read: Parameters = { path: {}, query: {}, errors: [] }
    for (let index = 0; index < inPath.length; index++)
      assign(read.path, inPath[index] as Parameter, pathValues[index] as string, read.errors)
    if (search !== '') readQuery(inQuery, search, read)
    return read
  }
}

/**
 * express-openapi-validator lets some repeated and bracketed parameters pass (`?limit[=1`). Reserved characters need no
 * escape in a query (RFC 3986, section 3.4), so a timestamp may contain colons.
 */
function readQuery(documented: Map<string, Parameter>, search: string, { query, errors }: Parameters) {
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const rawName = equals < 0 ? pair : pair.slice(0, equals)
    const name = decode(rawName.replaceAll('+', ' ')) ?? rawName
    const parameter = documented.get(name)
    const value = equals < 0 ? '' : pair.slice(equals + 1).replaceAll('+', ' ')
    if (!parameter) errors.push({ parameter: name, detail: 'is not a parameter of this operation' })
    else assign(query, parameter, value, errors)
  }
}

function assign(values: Record<string, unknown>, { name, schema }: Parameter, raw: string, errors: ParameterError[]) {
  const value = decode(raw)
  if (value === undefined) errors.push({ parameter: name, detail: 'is not percent-encoded correctly' })
  else if (value.includes('\0')) errors.push({ parameter: name, detail: 'must not contain U+0000' })
  else if (schema.type === 'array') values[name] = [...((values[name] as string[] | undefined) ?? []), value]
  else if (Object.hasOwn(values, name)) errors.push({ parameter: name, detail: 'is given more than once' })
  else if ((schema.type === 'integer' || schema.type === 'number') && !isNumber(value)) {
    errors.push({ parameter: name, detail: `must be ${schema.type}` })
  } else values[name] = value
}

function isNumber(text: string): boolean {
  return numberPattern.test(text) && Number.isFinite(Number(text))
}

function decode(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Documented headers by their documented names. */
export function readHeaders({ parameters }: Operation, headers: IncomingHttpHeaders): Record<string, unknown> {
  const read: Record<string, unknown> = {}
  for (const { in: place, name } of parameters) {
    const value = place === 'header' ? headers[name.toLowerCase()] : undefined
    if (value !== undefined) read[name] = value
  }
  return read
}
