/**
 * Checks of JSON values that Ajv has compiled to code. Linking them loads no compiler, which executors and commands would
 * wait for.
 */
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { toPointer } from '../openapi/json-pointer.ts'

/** Names members, never their values. */
export interface Mismatch {
  /** JSON Pointer to the member, also to one that is missing or unknown. */
  pointer: string
  detail: string
}

/** Returns the first mismatch; `undefined` when the value is valid. */
export type Check = (value: unknown) => Mismatch | undefined

/** @param require returns modules of Ajv, and `formats`. */
export type Link = (require: (id: string) => unknown) => Readonly<Record<string, ValidateFunction>>

const require = createRequire(import.meta.url)

/**
 * The checks by their names in the compiled code.
 *
 * @param details what to say in place of Ajv's messages.
 */
export function linkChecks(link: Link, details: Readonly<Record<string, string>> = {}): Map<string, Check> {
  const checks = link((id) => (id === 'formats' ? allFormats : require(id)))
  const createCheck = (validate: ValidateFunction): Check => {
    return (value) => {
      if (validate(value)) return undefined
      const { pointer, detail } = mostSpecific((validate.errors as ErrorObject[]).map((error) => describeError(error)))
      return { pointer, detail: details[detail] ?? detail }
    }
  }
  return new Map(Object.entries(checks).map(([name, validate]) => [name, createCheck(validate)]))
}

/** Alternatives that do not apply have errors, too: the deepest place is of the one that almost applies. */
function mostSpecific(errors: readonly Mismatch[]): Mismatch {
  const depthOf = ({ pointer, detail }: Mismatch) => pointer.split('/').length + (detail === unknownMember ? 1 : 0)
  return errors.reduce((best, each) => (depthOf(each) > depthOf(best) ? each : best))
}

export const unknownMember = 'is not a documented member'

/** @param unknownDetail the detail for members that the schema does not allow. */
export function describeError(
  { instancePath, params, message = 'is invalid' }: ErrorObject,
  unknownDetail = unknownMember,
): Mismatch {
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues } = params
  const unknown = additionalProperty ?? unevaluatedProperty
  const member = unknown ?? missingProperty
  const pointer = member === undefined ? instancePath : instancePath + toPointer([member])
  if (unknown !== undefined) return { pointer, detail: unknownDetail }
  if (missingProperty !== undefined) return { pointer, detail: 'is required' }
  const values = allowedValues ? `: ${allowedValues.map((value: unknown) => JSON.stringify(value)).join(', ')}` : ''
  return { pointer, detail: `${message}${values}` }
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

const allFormats = { ...fullFormats, ...formats }
