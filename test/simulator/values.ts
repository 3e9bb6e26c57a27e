/** Values at and beyond the bounds of a schema: text for parameters, modified copies of an example for bodies. */
import { type Json, type Surface, schemaOf } from '../operations/document.ts'

/** A value with its description. */
export type Value<T> = [what: string, value: T]

/** A string of the given length that matches the schema's pattern if a repeated character can. */
function repeatCharacter(length: number, { example }: Json): string {
  const letter = typeof example === 'string' && /^[0-9]/.test(example) ? '1' : 'a'
  return letter.repeat(Math.max(0, length))
}

function valuesAtBounds(schema: Json): Value<unknown>[] {
  const { minimum, maximum, exclusiveMinimum, minLength, maxLength, maxItems, ...rest } = schema as Record<
    string,
    number
  >
  const values: Value<unknown>[] = []
  if (minimum !== undefined) values.push(['at its minimum', minimum], ['below its minimum', minimum - 1])
  if (maximum !== undefined) values.push(['at its maximum', maximum], ['above its maximum', maximum + 1])
  if (exclusiveMinimum !== undefined) values.push(['at its exclusive minimum', exclusiveMinimum])
  if (minLength !== undefined) {
    values.push(
      ['of the minimum length', repeatCharacter(minLength, rest)],
      ['too short', repeatCharacter(minLength - 1, rest)],
    )
  }
  if (maxLength !== undefined) {
    values.push(
      ['of the maximum length', repeatCharacter(maxLength, rest)],
      ['too long', repeatCharacter(maxLength + 1, rest)],
    )
  }
  if (schema.type === 'integer') values.push(['a fraction', 1.5], ['as an exponent', '1e1'])
  for (const item of (schema.enum ?? []) as unknown[]) values.push([`with the value ${item}`, item])
  if (schema.enum)
    values.push(
      ['with an unknown value', 'other'],
      ['in upper case', String((schema.enum as string[])[0]).toUpperCase()],
    )
  return values
}

const byFormat: Record<string, string[]> = {
  uuid: [
    '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07',
    '0198F2C5-7A10-7C3E-9D51-2F6B8A4E1C07',
    'urn:uuid:0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07',
    '1',
  ],
  'date-time': [
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.123+01:00',
    '2026-02-30T00:00:00Z',
    '2026-01-01T00:00:00',
    'yesterday',
  ],
}

/** Not percent-encoded. */
export function parameterValues(surface: Surface, parameter: { schema: Json }): Value<string>[] {
  const listOrValue = schemaOf(surface, parameter.schema)
  const schema = listOrValue.type === 'array' ? schemaOf(surface, listOrValue.items as Json) : listOrValue
  const formatted = (byFormat[String(schema.format)] ?? []).map(
    (text): Value<unknown> => [`with the value ${text}`, text],
  )
  const others: Value<string>[] = [
    ['of another type', 'x y'],
    ['in brackets', '[5]'],
    ['with an umlaut', 'ä'],
    ['null', 'null'],
  ]
  return [...valuesAtBounds(schema), ...formatted, ...others].map(([what, value]) => [what, String(value)])
}

type Change = Value<unknown>

/** Copies of the value, each modified at one location that the schema constrains. */
export function modifiedBodies(surface: Surface, schemaOrRef: unknown, value: unknown): Change[] {
  const schema = schemaOf(surface, schemaOrRef)
  const wrong: Change[] = [
    ['of the wrong type', typeof value === 'string' ? 7 : 'text'],
    ['null', null],
    ['a list', ['x']],
  ]
  const memberCopies = [
    ...valuesAtBounds(schema),
    ...(byFormat[String(schema.format)] ?? []).map((it): Change => [`with the value ${it}`, it]),
  ]
  if (Array.isArray(value)) {
    const items = modifiedBodies(surface, schema.items ?? {}, value[0])
    return [...wrong, ...memberCopies, ['empty', []], ...within('/0', items, (item) => [item, ...value.slice(1)])]
  }
  if (typeof value !== 'object' || value === null) return [...wrong, ...memberCopies]
  const object = value as Json
  const additional: Change[] = [
    ['with an additional member', { ...object, additional: 1 }],
    ['with a member toString', { ...object, toString: 1 }],
  ]
  const properties = Object.entries((schema.properties ?? {}) as Json)
  const members = properties.flatMap(([name, member]): Change[] => {
    const { [name]: memberValue, ...others } = object
    const changed = modifiedBodies(surface, member, memberValue ?? exampleOf(surface, member))
    return [[`without ${name}`, others], ...within(`/${name}`, changed, (it) => ({ ...object, [name]: it }))]
  })
  return [...wrong, ...additional, ...members]
}

function within(pointer: string, changes: Change[], put: (value: unknown) => unknown): Change[] {
  return changes.map(([what, value]) => [`${pointer} ${what}`, put(value)])
}

function exampleOf(surface: Surface, schema: unknown): unknown {
  const { example, type } = schemaOf(surface, schema)
  const usual: Record<string, unknown> = { string: 'a', number: 1, integer: 1, boolean: true, array: [], object: {} }
  return example ?? usual[String(type)] ?? null
}
