/**
 * Validates responses against the document before they are sent: status, media type, required headers, and the body.
 */
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document, Schema } from '../openapi/document.ts'
import type { Operation } from '../openapi/served-operations.ts'
import { EncodedJson, JsonText } from './i-json.ts'

/** Headers that every response has; see `send` in response.ts. */
export const commonHeaders = ['X-Request-Id', 'X-Document-Hash', 'Cache-Control']

/** Describes the error by names of members, never by their values; `undefined` when the value is valid. */
export type Check = (value: unknown) => string | undefined

export interface ResponseValidation {
  /** @param headers by their names as the document spells them. */
  check(status: number, mediaType: string | undefined, headers: object, body: unknown): string | undefined
  /** Checks the data of one server-sent event. */
  checkEvent: Check
}

/**
 * @param compile compiles the schemas without members that the document does not list.
 * @throws {Error} when a schema of the operation's responses cannot be compiled.
 */
export function responseValidation(compile: (schema: Schema) => Check, { responses }: Operation): ResponseValidation {
  const documented = new Map<number, { requiredHeaders: string[]; checks: Map<string, Check> }>()
  let checkEvent: Check = () => 'the operation has no event stream'
  for (const [status, { content, isBinary, requiredHeaders }] of responses) {
    const checks = new Map<string, Check>()
    for (const [mediaType, schema] of Object.entries(content)) {
      // A schema describes JSON values; the bytes of a file are not checked.
      checks.set(mediaType, isBinary ? checkBytes : compile(schema))
      if (mediaType === 'text/event-stream') checkEvent = compile((schema.contentSchema ?? {}) as Schema)
    }
    documented.set(status, { checks, requiredHeaders: requiredHeaders.filter((name) => !commonHeaders.includes(name)) })
  }
  return {
    checkEvent,
    check(status, mediaType, headers, body) {
      const response = documented.get(status)
      if (!response) return `status ${status} is not documented`
      const missing = response.requiredHeaders.find((name) => !(name in headers))
      if (missing) return `the header ${missing} is missing`
      if (mediaType === undefined) return response.checks.size > 0 ? 'the body is missing' : undefined
      const check = response.checks.get(mediaType)
      if (!check) return `the media type ${mediaType} is not documented`
      if (check !== checkBytes && body instanceof Uint8Array) return 'the response is not documented as bytes'
      return body instanceof JsonText || body instanceof EncodedJson ? undefined : check(body)
    },
  }
}

const checkBytes: Check = (body) => (body instanceof Uint8Array ? undefined : 'the body must be bytes')

/** Compiles schemas of the document. Equal schemas are compiled once, and each component once for all that refer to it. */
export function schemaCompiler({ components }: Pick<Document, 'components'>): (schema: Schema) => Check {
  // `validateSchema` would compile JSON Schema's own schema, which takes 40 ms; Redocly lints the documents instead.
  const ajv = new Ajv2020({ strict: false, strictTuples: true, validateSchema: false })
  addFormats.default(ajv)
  for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format)
  ajv.addSchema({ components }, 'document')
  const checks = new Map<string, Check>()
  return (schema) => {
    const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"document#/')
    let check = checks.get(text)
    if (!check) {
      const validate = ajv.compile(JSON.parse(text))
      check = (value) => (validate(value) ? undefined : validate.errors?.map(describeError).join(', '))
      checks.set(text, check)
    }
    return check
  }
}

/** `/title must be string`, with the name of a missing or unknown member in the pointer. */
function describeError({ instancePath, params, message }: ErrorObject): string {
  const member = params.additionalProperty ?? params.unevaluatedProperty
  return `${instancePath}${member === undefined ? '' : `/${member}`} ${message}`.trim()
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const momentPattern =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i

/** String formats that ajv-formats checks too leniently. Used for requests, too. */
export const formats = {
  /** ajv-formats also accepts the prefix `urn:uuid:`. */
  uuid: (text: string) => uuidPattern.test(text),
  /**
   * RFC 3339, section 5.6, as far as `Date` can represent it. ajv-formats also accepts the offset `+01` and the second
   * 60, which `Date` turns into NaN, and in its fast mode February 31st, which `Date` turns into March.
   */
  'date-time'(text: string) {
    const day = text.slice(8, 10)
    return momentPattern.test(text) && (day <= '28' || new Date(text.slice(0, 10)).getUTCDate() === Number(day))
  },
}
