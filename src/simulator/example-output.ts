/** Outputs that fit the schema of their workflow. */
import {
  exampleOf,
  isObject,
  type Members,
  memberSchemas,
  resolveSchema,
  toMembers,
} from '../domain/workflows/example-values.ts'
import { type JsonSchema, type Workflow, WorkflowError } from '../domain/workflows/workflow.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import { exampleOfPattern } from './pattern-example.ts'

/**
 * The schema's first example that is valid, or else a value made from the schema. The same for all runs.
 *
 * @returns undefined if no valid value was found: the schema needs an example, or the workflow a scenario.
 */
export function makeOutput(workflow: Workflow): unknown {
  const { id, output: schema, examples } = workflow
  const deployed = examples?.outputs ?? []
  const own = Array.isArray(schema.examples) ? schema.examples : []
  const workflows = new Workflows([workflow])
  const isValid = (value: unknown) => 'masked' in workflows.checkOutput(id, structuredClone(value))
  try {
    return own.find(isValid) ?? findMade(schema, isValid) ?? [...deployed, exampleOf('output', schema)].find(isValid)
  } catch (error) {
    // The schema refers to one of another workflow. The deployment has checked the example.
    if (error instanceof WorkflowError) return deployed[0]
    throw error
  }
}

/** Choices among the alternatives of `anyOf` and `oneOf`. */
const variantsMax = 8

function findMade(schema: JsonSchema, isValid: (value: unknown) => boolean): unknown {
  for (const isFull of [true, false]) {
    for (let variant = 0; variant < variantsMax; variant++) {
      const value = new ValueMaker(schema, isFull, variant).make('output', schema)
      if (value !== undefined && isValid(value)) return value
    }
  }
  return undefined
}

const formats: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'ada@example.com',
  hostname: 'www.example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  'uri-reference': '/path',
  'uri-template': '/path/{id}',
  uuid: '00000000-0000-4000-8000-000000000000',
  'json-pointer': '/member',
  'relative-json-pointer': '0',
  regex: '.*',
}

/** Deeper objects have only what they require, and deeper arrays as few items as they may. */
const fullDepthMax = 3
/** Ends schemas that require themselves. */
const depthMax = 12

class ValueMaker {
  readonly #root: JsonSchema
  /** Whether objects have all members and arrays have items, and not only what the schema requires. */
  readonly #isFull: boolean
  readonly #variant: number
  #depth = 0

  constructor(root: JsonSchema, isFull: boolean, variant: number) {
    this.#root = root
    this.#isFull = isFull
    this.#variant = variant
  }

  /** @returns undefined if there is no value, or it would be too deep. */
  make(name: string, unresolved: unknown): unknown {
    if (unresolved === false || this.#depth > depthMax) return undefined
    const schema = this.#combine(unresolved)
    if ('const' in schema) return schema.const
    for (const values of [schema.examples, 'default' in schema ? [schema.default] : [], schema.enum])
      if (Array.isArray(values) && values.length > 0) return values[this.#variant % values.length]
    this.#depth += 1
    const value = this.#makeOfType(name, schema)
    this.#depth -= 1
    return value
  }

  /** The schema with what `allOf` and one alternative of `anyOf` and `oneOf` add. */
  #combine(unresolved: unknown, depth = 0): Members {
    const schema = toMembers(resolveSchema(unresolved, this.#root))
    const { allOf, anyOf, oneOf, ...own } = schema
    const alternatives = [anyOf, oneOf].flatMap((each) =>
      Array.isArray(each) && each.length > 0 ? [each[this.#variant % each.length]] : [],
    )
    const parts = [...(Array.isArray(allOf) ? allOf : []), ...alternatives]
    if (depth > depthMax) return own
    return parts.map((part) => this.#combine(part, depth + 1)).reduce(merge, own)
  }

  #makeOfType(name: string, schema: Members): unknown {
    switch (typeOf(schema, this.#variant)) {
      case 'string':
        return makeText(name, schema)
      case 'integer':
        return makeNumber(schema, 1)
      case 'number':
        return makeNumber(schema, undefined)
      case 'boolean':
        return true
      case 'array':
        return this.#makeArray(name, schema)
      case 'object':
        return this.#makeObject(schema)
      default:
        return null
    }
  }

  get #addsOptional(): boolean {
    return this.#isFull && this.#depth <= fullDepthMax
  }

  #makeArray(name: string, { items = true, prefixItems, minItems, maxItems, uniqueItems, contains }: Members): unknown {
    const prefix = Array.isArray(prefixItems) ? prefixItems : []
    const few = Math.max(Number(minItems ?? 0), contains === undefined ? 0 : 1)
    const wanted = this.#addsOptional ? Math.max(1, prefix.length) : 0
    const count = Math.max(few, Math.min(wanted, Number(maxItems ?? wanted)))
    const values = Array.from({ length: Math.min(count, itemsMax) }, (_, index) => {
      const value = this.make(name, prefix[index] ?? (index === prefix.length && contains ? contains : items))
      return uniqueItems === true ? distinguish(value, index) : value
    })
    return values.includes(undefined) ? (few === 0 ? [] : undefined) : values
  }

  #makeObject(schema: Members): unknown {
    const members: [string, unknown][] = []
    for (const { name, schema: member, required } of memberSchemas(schema)) {
      if (!required && !this.#addsOptional) continue
      const value = this.make(name, member)
      if (value !== undefined) members.push([name, value])
      else if (required) return undefined
    }
    const missing = Number(schema.minProperties ?? 0) - members.length
    for (let index = 0; index < Math.min(missing, itemsMax); index++)
      members.push([`member${index + 1}`, this.make('member', schema.additionalProperties ?? true)])
    // Not by assignment, which would set the prototype for a member named `__proto__`.
    return Object.fromEntries(members)
  }
}

const itemsMax = 1000

function merge(a: Members, b: Members): Members {
  const required = [a.required, b.required].flatMap((each) => (Array.isArray(each) ? each : []))
  const both = isObject(a.properties) || isObject(b.properties)
  return {
    ...a,
    ...b,
    ...(required.length > 0 && { required }),
    ...(both && { properties: { ...toMembers(a.properties), ...toMembers(b.properties) } }),
  }
}

const impliedTypes: Record<string, readonly string[]> = {
  object: ['properties', 'required', 'minProperties', 'additionalProperties', 'patternProperties'],
  array: ['items', 'prefixItems', 'minItems', 'contains', 'uniqueItems'],
  string: ['pattern', 'format', 'minLength', 'maxLength'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
}

function typeOf(schema: Members, variant: number): string {
  const types = [schema.type ?? []].flat().map(String)
  if (types.length > 0) return types[variant % types.length] as string
  const implied = Object.entries(impliedTypes).find(([, keywords]) => keywords.some((keyword) => keyword in schema))
  return implied?.[0] ?? 'string'
}

function makeText(name: string, { format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Members) {
  const [min, max] = [Number(minLength), Number(maxLength)]
  if (typeof pattern === 'string') return exampleOfPattern(pattern, min, max)
  const known = formats[String(format)]
  if (known !== undefined) return known
  const text = `Example of ${name}`
  return text.padEnd(Math.min(min, textLengthMax), ' text').slice(0, max)
}

const textLengthMax = 100_000

/** @param step of all numbers. */
function makeNumber({ multipleOf, ...bounds }: Members, step: number | undefined): number {
  const unit = typeof multipleOf === 'number' ? multipleOf : (step ?? 0)
  const read = (name: string) => (typeof bounds[name] === 'number' ? (bounds[name] as number) : undefined)
  const [above, below] = [read('exclusiveMinimum'), read('exclusiveMaximum')]
  const gap = unit || (above !== undefined && below !== undefined ? (below - above) / 2 : 1)
  const min = Math.max(read('minimum') ?? Number.NEGATIVE_INFINITY, (above ?? Number.NEGATIVE_INFINITY) + gap)
  const max = Math.min(read('maximum') ?? Number.POSITIVE_INFINITY, (below ?? Number.POSITIVE_INFINITY) - gap)
  const value = Math.min(Math.max(unit || 1, min), max)
  return unit ? (value === max && max < min + unit ? Math.floor(value / unit) : Math.ceil(value / unit)) * unit : value
}

/** Another value for each index. */
function distinguish(value: unknown, index: number): unknown {
  if (index === 0) return value
  if (typeof value === 'number') return value + index
  if (typeof value === 'string') return `${value} ${index + 1}`
  if (!isObject(value)) return value
  const [first] = Object.entries(value).filter(([, each]) => typeof each === 'number' || typeof each === 'string')
  return first ? { ...value, [first[0]]: distinguish(first[1], index) } : value
}
