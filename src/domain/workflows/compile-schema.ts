/**
 * Compiles the schemas of workflows with Ajv. A schema is checked and copied first: what tools write for other tools is left
 * out of the copy, and each schema in it gets a keyword that counts the work of applying it.
 */
import { createRequire } from 'node:module'
import { Script } from 'node:vm'
import type { CodeKeywordDefinition, ErrorObject, KeywordCxt, ValidateFunction } from 'ajv'
import { Ajv2020, type CodeOptions } from 'ajv/dist/2020.js'
import { _, type Code, str } from 'ajv/dist/core.js'
import standalone from 'ajv/dist/standalone/index.js'
import addFormats from 'ajv-formats'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { describeError, type Mismatch } from '../../contract/compiled-checks.ts'
import { walk } from '../../openapi/document.ts'
import { type Path, parsePointer, toPointer } from '../../openapi/json-pointer.ts'
import { isKnownPattern } from '../../openapi/known-patterns.ts'
import { indexSchemas, mapSchemas, resolveReference, SchemaError } from '../../openapi/schema-components.ts'
import { schemaRuntime } from './schema-runtime.ts'
import type { JsonSchema } from './workflow.ts'

/** A schema that cannot be compiled, or whose checks cannot be shown to end. */
export class InvalidSchema extends Error {
  /** JSON Pointer to the place in the schema. */
  readonly pointer: string

  /** @param message the rest of a sentence that begins with the place. */
  constructor(path: Path, message: string) {
    super(message)
    this.pointer = toPointer(path)
  }
}

/** Ends at the first error, and finds all errors. */
export interface CompiledSchema {
  first: ValidateFunction
  all: ValidateFunction
}

/** The format of a variable that names a file. */
export const fileFormat = 'file'

/** @throws {InvalidSchema} */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  return compileWith(schema, {}, (ajv, prepared) => ajv.compile(prepared))
}

function compileWith<Result>(
  schema: JsonSchema,
  code: CodeOptions,
  compile: (ajv: Ajv2020, prepared: JsonSchema) => Result,
) {
  const prepared = prepareSchema(schema)
  try {
    return { first: compile(createAjv(false, code), prepared), all: compile(createAjv(true, code), prepared) }
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidSchema([], 'nests too deep to be compiled')
    throw explain(schema, (error as Error).message)
  }
}

/** The place in the schema that a message of Ajv is about, and the reason. */
function explain(schema: JsonSchema, message: string): InvalidSchema {
  const [start, name = '', , place = ''] = message.split('"')
  if (start === 'unknown format ') {
    const path = parsePointer(`${decodeURI(place.slice(1))}/format`)
    return new InvalidSchema(path, `is "${name}", which is no known format. Write a \`pattern\` instead`)
  }
  const keyword = start === 'strict mode: unknown keyword: ' ? name : undefined
  const [, reference] = /^can't resolve reference (\S+) from/.exec(message) ?? []
  for (const { value, path } of walk(schema)) {
    const isSchema = !namesSchemas.includes(String(path.at(-1)))
    if (keyword !== undefined && isSchema && Object.hasOwn(Object(value), keyword))
      return new InvalidSchema([...path, keyword], 'is an unknown keyword. Names of extensions begin with `x-`')
    if (reference !== undefined && Object(value).$ref === reference)
      return new InvalidSchema([...path, '$ref'], `refers to ${reference}, which the schema does not have`)
  }
  return new InvalidSchema([], message)
}

/** Keywords whose members are names, not keywords. */
const namesSchemas = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']

let schemaValidator: Ajv2020 | undefined

/** By JSON Schema's own schema. One for all: compiling it takes 40 ms. @throws {InvalidSchema} */
function requireValid(schema: JsonSchema): void {
  schemaValidator ??= new Ajv2020({ strict: false, logger: false })
  if (schemaValidator.validateSchema(schema)) return
  const { pointer, detail } = describeVariableError(schemaValidator.errors?.[0] as ErrorObject)
  throw new InvalidSchema(parsePointer(pointer), detail)
}

/** A value that does not match its schema: a JSON Pointer (RFC 6901) and the reason. */
export type VariableError = Mismatch

/** @param fileDetail the detail for values that name no file. */
export function describeVariableError(error: ErrorObject, fileDetail = ''): VariableError {
  if (error.params.format === fileFormat) return { pointer: error.instancePath, detail: fileDetail }
  return describeError(error, 'is not in the schema')
}

// A compiled schema as text, so that one thread can compile it for another.

/** V8's bytecode spares the receiving thread the compilation of the text: 12 ms in place of 250 for 700 members. */
export interface SchemaCode {
  text: string
  bytecode: Uint8Array
}

/** @throws {InvalidSchema} */
export function compileToCode(schema: JsonSchema): SchemaCode {
  const { first, all } = compileWith(schema, asText, (ajv, prepared) => standalone.default(ajv, ajv.compile(prepared)))
  const link = (code: string) => `((module, exports) => { ${code}\nreturn module.exports })({ exports: {} }, {})`
  const text = `(require) => ({ first: ${link(first)}, all: ${link(all)} })`
  const script = new Script(text)
  const compiled = linkScript(script)
  // V8 compiles a function when it is called first.
  for (const validate of [compiled.first, compiled.all])
    schemaRuntime.run(
      {},
      () => true,
      () => validate({}),
    )
  return { text, bytecode: script.createCachedData() }
}

export function linkCode({ text, bytecode }: SchemaCode): CompiledSchema {
  return linkScript(
    new Script(text, { cachedData: Buffer.from(bytecode.buffer, bytecode.byteOffset, bytecode.length) }),
  )
}

const require = createRequire(import.meta.url)

function linkScript(script: Script): CompiledSchema {
  const modules: Record<string, unknown> = { formats, runtime: schemaRuntime }
  return script.runInThisContext()((id: string) => modules[id] ?? require(id))
}

// Ajv, with keywords that call the runtime of schemas.

/** `require` resolves these names in code that is compiled to text. */
const runtimeCode = _`require("runtime")`
/** To optimize large schemas takes Ajv most of the time, and makes their code little faster. */
const asText: CodeOptions = { source: true, optimize: false, formats: _`require("formats")` }

/** Formats that tools write beside a pattern, or to describe a value: they restrict nothing here. */
const describingFormats = [
  ...[
    'base64',
    'base64url',
    'base64url-encoded',
    'binary',
    'cidrv4',
    'cidrv6',
    'color',
    'cuid',
    'cuid2',
    'directory-path',
  ],
  ...['e164', 'emoji', 'ends_with', 'file-path', 'guid', 'hex', 'includes', 'ipv4interface', 'ipv4network'],
  ...[
    'ipv6interface',
    'ipv6network',
    'ipvanyaddress',
    'ipvanyinterface',
    'ipvanynetwork',
    'json-string',
    'jwt',
    'ksuid',
  ],
  ...['lowercase', 'mac', 'multi-host-uri', 'name-email', 'nanoid', 'password', 'path', 'safeint', 'starts_with'],
  ...['uint32', 'uint64', 'ulid', 'uppercase', 'xid'],
  ...['md5', 'sha1', 'sha256', 'sha384', 'sha512'].flatMap((name) =>
    ['hex', 'base64', 'base64url'].map((encoding) => `${name}_${encoding}`),
  ),
]

const formats = {
  ...fullFormats,
  ...Object.fromEntries(describingFormats.map((name) => [name, true as const])),
  ...Object.fromEntries([1, 3, 4, 5, 6, 7, 8].map((version) => [`uuid${version}`, fullFormats.uuid])),
  [fileFormat]: (text: string) => schemaRuntime.isFile(text),
}

function createAjv(allErrors: boolean, code: CodeOptions): Ajv2020 {
  // `ownProperties`: otherwise the member `constructor` that every object inherits would count as sent.
  const options = { useDefaults: true, strictTypes: false, strictRequired: false, ownProperties: true } as const
  // Ajv logs the whole code of a schema that it cannot compile.
  const ajv = new Ajv2020({ ...options, allErrors, code, validateSchema: false, meta: false, logger: false })
  addFormats.default(ajv)
  for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format)
  // To Ajv, `writeOnly` is an annotation. As a keyword it reports secrets wherever $ref, anyOf etc. lead.
  for (const keyword of ['writeOnly', 'multipleOf', 'uniqueItems']) ajv.removeKeyword(keyword)
  for (const keyword of keywords) ajv.addKeyword(keyword)
  return ajv
}

function runtimeOf({ gen }: KeywordCxt): Code {
  return gen.scopeValue('obj', { ref: schemaRuntime, code: runtimeCode })
}

/** The pointer to the value that is checked. */
function pointerOf({ it: { errorPath } }: KeywordCxt): Code {
  return _`instancePath + ${errorPath}`
}

const workKeyword = 'x-execution-service-work'
// Ajv does not tell a format where its value is, so that each schema with the format of files also gets a keyword.
const fileKeyword = 'x-execution-service-file'

const keywords: CodeKeywordDefinition[] = [
  {
    keyword: workKeyword,
    // First of all keywords, so that no failure of another precedes it.
    before: '$dynamicAnchor',
    schemaType: 'object',
    code(context) {
      const { gen, data } = context
      const runtime = runtimeOf(context)
      const { fixed, text, slow, items, names } = context.schema as Work
      const work = [
        _`${fixed}`,
        ...(text > 0 ? [_`${text} * ${runtime}.ofText(${data})`] : []),
        ...(slow ? [_`${runtime}.ofSlowText(${data})`] : []),
        ...(items > 0 ? [_`${items} * ${runtime}.ofItems(${data})`] : []),
        ...(names > 0 ? [_`${names} * ${runtime}.ofNames(${data})`] : []),
      ].reduce((sum, each) => _`${sum} + ${each}`)
      gen.code(_`${runtime}.left -= ${work}`)
      gen.if(_`${runtime}.left < 0`, () => gen.throw(_`${runtime}.exceeded`))
    },
  },
  {
    keyword: 'writeOnly',
    schemaType: 'boolean',
    code(context) {
      if (context.schema === true) context.gen.code(_`${runtimeOf(context)}.secret(${pointerOf(context)})`)
    },
  },
  {
    keyword: fileKeyword,
    schemaType: 'boolean',
    code(context) {
      context.gen.code(_`${runtimeOf(context)}.file(${pointerOf(context)}, ${context.data})`)
    },
  },
  {
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    error: {
      message: ({ schemaCode }) => str`must be multiple of ${schemaCode}`,
      params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}`,
    },
    code(context) {
      context.fail(_`!${runtimeOf(context)}.isMultipleOf(${context.data}, ${context.schema})`)
    },
  },
  {
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: {
      message: ({ params: { equal } }) => {
        const [first, second] = [_`${equal}[0]`, _`${equal}[1]`]
        return str`must NOT have duplicate items (items ## ${second} and ${first} are identical)`
      },
      params: ({ params: { equal } }) => _`{i: ${equal}[1], j: ${equal}[0]}`,
    },
    code(context) {
      if (context.schema !== true) return
      const equal = context.gen.const('equal', _`${runtimeOf(context)}.findEqual(${context.data})`)
      context.setParams({ equal })
      context.fail(_`${equal} !== undefined`)
    },
  },
]

// The copy of a schema that is compiled.

/** The work of applying a schema to a value. */
interface Work {
  /** Of each value. */
  fixed: number
  /** How often a text is read. */
  text: number
  /** Whether the pattern is slow with long texts. */
  slow: boolean
  /** How often the items of an array are counted. */
  items: number
  /** How often the names of an object are read. */
  names: number
}

/** Schemas and their keywords. Compiling 5,000 takes some seconds in a thread. */
const subschemasMax = 5000
/** The code of a schema nests as deep as it has members: V8 reads some thousand levels. */
const membersMax = 1000

/** Keywords and names on the way to a schema. */
const pathLengthMax = 200

export function countSubschemas(schema: JsonSchema): number {
  let count = 0
  const visit = (value: unknown): unknown => {
    count += 1
    if (isSchema(value)) mapSchemas(value, [], visit)
    return value
  }
  visit(schema)
  return count
}

/** @throws {InvalidSchema} */
function prepareSchema(root: JsonSchema): JsonSchema {
  let count = 0
  const prepare = (value: unknown, path: Path): unknown => {
    if (!isSchema(value)) return value
    count += 1
    if (path.length > pathLengthMax)
      throw new InvalidSchema(path, `is below ${pathLengthMax} levels. Put it into \`$defs\``)
    if (count > subschemasMax)
      throw new InvalidSchema(
        [],
        `has more than ${subschemasMax} schemas in it. Divide the workflow, or leave parts of the value open`,
      )
    requireCurrentKeywords(value, path)
    const copy = mapSchemas(withoutForeign(value), path, prepare)
    if (copy.format === fileFormat) copy[fileKeyword] = true
    const work = workOf(value)
    if (work) copy[workKeyword] = work
    return copy
  }
  const prepared = prepare(root, []) as JsonSchema
  requireValid(prepared)
  requireProgress(root)
  return prepared
}

/** They apply a schema to the same value, not to a part of it. */
const inPlace = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas']

/** Refuses schemas that lead back to themselves with the same value. @throws {InvalidSchema} */
function requireProgress(root: JsonSchema): void {
  const index = indexSchemas(root)
  const done = new Set<unknown>()
  const open = new Set<unknown>()
  const visit = (schema: unknown, path: Path): void => {
    if (!isSchema(schema) || done.has(schema)) return
    open.add(schema)
    const { $ref } = schema
    const target = typeof $ref === 'string' ? findTarget($ref, schema, path) : undefined
    if (target && open.has(target.schema)) {
      const advice = 'Remove the reference, or put it into `properties` or `items`'
      throw new InvalidSchema(
        [...path, '$ref'],
        `refers to a schema that it is part of, for the same value, so that no check would end. ${advice}`,
      )
    }
    if (target) visit(target.schema, target.path)
    mapSchemas(schema, path, (value, place) => {
      if (inPlace.includes(String(place[path.length]))) visit(value, place)
      return value
    })
    open.delete(schema)
    done.add(schema)
  }
  const findTarget = ($ref: string, schema: JsonSchema, path: Path) => {
    try {
      return resolveReference(index, schema, $ref, path)
    } catch (error) {
      if (error instanceof SchemaError) return undefined
      throw error
    }
  }
  const visitAll = (schema: unknown, path: Path): unknown => {
    visit(schema, path)
    if (isSchema(schema)) mapSchemas(schema, path, visitAll)
    return schema
  }
  visitAll(root, [])
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const listAdvice =
  'Write `prefixItems` for the first items and `items` for the others, as tools do with the target draft-2020-12'

/** Keywords of JSON Schema before 2020-12 that now mean nothing or something else, and what to write instead. */
const replaced: Record<string, string> = {
  additionalItems: listAdvice,
  dependencies: 'Write `dependentRequired` or `dependentSchemas`',
  $recursiveRef: 'Write `$ref`',
  $dynamicRef: 'Write `$ref`',
}

const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']

function requireCurrentKeywords(schema: JsonSchema, path: Path): void {
  if (Array.isArray(schema.items))
    throw new InvalidSchema([...path, 'items'], `is a list, as before JSON Schema 2020-12. ${listAdvice}`)
  for (const [keyword, advice] of Object.entries(replaced)) {
    if (Object.hasOwn(schema, keyword))
      throw new InvalidSchema([...path, keyword], `is no keyword of JSON Schema 2020-12 here. ${advice}`)
  }
  for (const [keyword, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof schema[keyword] === 'boolean')
      throw new InvalidSchema(
        [...path, keyword],
        `is a boolean, as in OpenAPI 3.0. Write the number here in place of \`${bound}\``,
      )
  }
  if (schema.nullable === true && schema.type === undefined)
    throw new InvalidSchema(
      [...path, 'nullable'],
      'needs a `type` beside it. Write `anyOf` with the schema and `{ "type": "null" }`',
    )
  const unknown = [schema.type].flat().find((type) => type !== undefined && !types.includes(type as string))
  if (unknown !== undefined)
    throw new InvalidSchema(
      [...path, 'type'],
      `is ${JSON.stringify(unknown)}, which is no type of JSON. Use the type of the JSON that callers send: ${types.join(', ')}`,
    )
  const members = Object.keys(Object(schema.properties)).length
  if (members > membersMax)
    throw new InvalidSchema(
      [...path, 'properties'],
      `has ${members} members, and may have ${membersMax}. Put them into objects, or use \`additionalProperties\``,
    )
}

/** Annotations of OpenAPI and of tools. `x-…` are extensions. Other unknown keywords are refused: most are typing errors. */
const foreign = [
  '$schema',
  'example',
  'discriminator',
  'externalDocs',
  'xml',
  '~standard',
  'markdownDescription',
  'errorMessage',
]

function withoutForeign(schema: JsonSchema): JsonSchema {
  const kept = Object.entries(schema).filter(([name]) => !foreign.includes(name) && !name.startsWith('x-'))
  return Object.fromEntries(kept)
}

const textKeywords = ['pattern', 'format', 'minLength', 'maxLength', 'enum', 'const']
const itemKeywords = ['items', 'contains', 'uniqueItems', 'unevaluatedItems']
const nameKeywords = [
  'additionalProperties',
  'propertyNames',
  'unevaluatedProperties',
  'minProperties',
  'maxProperties',
]

/** Units of work: a function of its own is called for a reference, and the errors of alternatives are collected. */
const referenceWork = 4
const alternativeWork = 3

/** `undefined` for schemas that are applied in constant time: the schema around them counts them. */
function workOf(schema: JsonSchema): Work | undefined {
  const count = (names: readonly string[]) => names.filter((name) => schema[name] !== undefined).length
  let within = 0
  mapSchemas(schema, [], (value, [keyword = '']) => {
    if (keyword === '$defs' || keyword === 'definitions') return value
    within += (inPlace.includes(String(keyword)) ? alternativeWork : 1) + sizeOf(Object(value).default)
    return value
  })
  const isReference = typeof schema.$ref === 'string'
  const values = sizeOf(schema.enum) + sizeOf(schema.const)
  const required = Array.isArray(schema.required) ? schema.required.length : 0
  const work = {
    fixed: 1 + within + values + required + (isReference ? referenceWork : 0),
    text: count(textKeywords),
    slow: typeof schema.pattern === 'string' && isKnownPattern(schema.pattern),
    items: count(itemKeywords),
    names: count(nameKeywords) + Object.keys(Object(schema.patternProperties)).length,
  }
  const isConstant = work.fixed === 1 && work.text + work.items + work.names === 0
  return isConstant ? undefined : work
}

/** Values in a value. */
function sizeOf(value: unknown): number {
  if (value === undefined) return 0
  let size = 0
  for (const _ of walk(value)) size += 1
  return size
}
