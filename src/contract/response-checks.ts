/**
 * Checks of the bodies of a document's responses. Compiling them takes 500 ms of CPU, and loading compiled code 10 ms: the
 * published package has the code in a file, and a checkout writes that file at the first start with a changed document.
 */
import { hash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInThisContext } from 'node:vm'
import { Ajv2020, type AnySchemaObject, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { _ } from 'ajv/dist/core.js'
import standalone from 'ajv/dist/standalone/index.js'
import addFormats from 'ajv-formats'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import type { Document, Schema } from '../openapi/document.ts'
import { toPointer } from '../openapi/json-pointer.ts'
import type { Operation } from '../openapi/served-operations.ts'
import { closeComponents, closeSchema } from './closed-schemas.ts'

/** Names members, never their values. */
export interface Mismatch {
  /** JSON Pointer to the member, also to one that is missing or unknown. */
  pointer: string
  detail: string
}

/** Returns the first mismatch; `undefined` when the value is valid. */
export type Check = (value: unknown) => Mismatch | undefined

/** The check of a body with the media type, or of the data of one server-sent event. */
export type FindCheck = (operation: Operation, status: number, mediaType: string, part?: 'event') => Check

/** What the file exports. */
interface CompiledChecks {
  /** Of everything that the checks are compiled from. */
  key: string
  /** Names of checks by `nameOf`. */
  names: Readonly<Record<string, string>>
  /** @param require returns modules of Ajv, and `formats`. */
  link(require: (id: string) => unknown): Readonly<Record<string, ValidateFunction>>
}

/** The files of the published package, which is JavaScript, do not change. */
const isPublished = extname(import.meta.url) === '.js'
const publishedKey = 'package'

const require = createRequire(import.meta.url)

const linked = new WeakMap<Document, FindCheck>()

/**
 * The checks of all bodies and events of the operations' responses, without members that the document does not list.
 *
 * @param file where the compiled code is kept; without it, the schemas are compiled.
 * @throws {Error} when a schema of a body cannot be compiled.
 */
export function responseChecks(document: Document, operations: readonly Operation[], file?: URL): FindCheck {
  const known = linked.get(document)
  if (known) return known
  const { names, link } = file ? keptChecks(document, operations, file) : compileChecks(document, operations)
  const checks = link((id) => (id === 'formats' ? allFormats : require(id)))
  const byName = new Map(Object.entries(checks).map(([name, validate]) => [name, createCheck(validate)]))
  const find: FindCheck = (...place) => byName.get(names[nameOf(...place)] ?? '') as Check
  linked.set(document, find)
  return find
}

/** Compiles the schema, which may refer to components of the document. */
export function compileCheck({ components }: Pick<Document, 'components'>, schema: Schema): Check {
  const ajv = createAjv(components)
  return createCheck(ajv.compile(inDocument(schema)))
}

function createCheck(validate: ValidateFunction): Check {
  return (value) => (validate(value) ? undefined : mostSpecific((validate.errors as ErrorObject[]).map(describeError)))
}

/** Alternatives that do not apply have errors, too: the deepest place is of the one that almost applies. */
function mostSpecific(errors: readonly Mismatch[]): Mismatch {
  const depthOf = ({ pointer, detail }: Mismatch) => pointer.split('/').length + (detail === unknownMember ? 1 : 0)
  return errors.reduce((best, each) => (depthOf(each) > depthOf(best) ? each : best))
}

const unknownMember = 'is not a documented member'

function describeError({ instancePath, params, message = '' }: ErrorObject): Mismatch {
  const unknown = params.additionalProperty ?? params.unevaluatedProperty
  const member = unknown ?? params.missingProperty
  const pointer = member === undefined ? instancePath : instancePath + toPointer([member])
  if (unknown !== undefined) return { pointer, detail: unknownMember }
  return { pointer, detail: params.missingProperty === undefined ? message : 'is required' }
}

function nameOf({ id }: Operation, status: number, mediaType: string, part?: 'event'): string {
  return [id, status, mediaType, part].join(' ').trim()
}

/** Changes with the document, and with the code that compiles it. */
function keyOf(document: Document): string {
  const sources = ['./response-checks', './closed-schemas'].map((path) =>
    readFileSync(new URL(`${path}.ts`, import.meta.url), 'utf8'),
  )
  const versions = ['ajv', 'ajv-formats'].map((name) => require(`${name}/package.json`).version)
  return hash('sha256', JSON.stringify([document, sources, versions]))
}

function keptChecks(document: Document, operations: readonly Operation[], file: URL): CompiledChecks {
  const key = isPublished ? publishedKey : keyOf(document)
  const kept = readChecks(file)
  if (kept?.key === key) return kept
  const expression = writeChecks(document, operations, key)
  keep(file, asModule(expression))
  return runInThisContext(`(${expression})`)
}

/** The content of the file that the published package has. */
export function publishedResponseChecks(document: Document, operations: readonly Operation[]): string {
  return asModule(writeChecks(document, operations, publishedKey))
}

function asModule(expression: string): string {
  return `module.exports = ${expression}\n`
}

function compileChecks(document: Document, operations: readonly Operation[]): CompiledChecks {
  return runInThisContext(`(${writeChecks(document, operations, '')})`)
}

function readChecks(file: URL): CompiledChecks | undefined {
  try {
    return require(fileURLToPath(file))
  } catch {
    // There is none yet.
    return undefined
  }
}

/** The file appears at once, complete. An installation may be read-only. */
function keep(file: URL, code: string): void {
  const path = fileURLToPath(file)
  const temporary = `${path}.${process.pid}`
  try {
    writeFileSync(temporary, code)
    renameSync(temporary, path)
  } catch {
    // The next start compiles again.
  }
}

/** The validator of requests compiles these only at the first request. */
function refuseInvalidBodies({ components }: Document, operations: readonly Operation[]): void {
  const ajv = createAjv(components)
  for (const schema of operations.flatMap(({ body }) => body?.schemas ?? [])) ajv.compile(inDocument(schema))
}

/** An expression. Equal schemas are compiled once, and each component once for all that refer to it. */
function writeChecks(document: Document, operations: readonly Operation[], key: string): string {
  const { components } = document
  refuseInvalidBodies(document, operations)
  const ajv = createAjv(closeComponents(components))
  const known = new Map<string, string>()
  const names: Record<string, string> = {}
  const add = (place: string, schema: Schema) => {
    const text = JSON.stringify(inDocument(closeSchema(schema)))
    const name = known.get(text) ?? `check${known.size}`
    if (!known.has(text)) ajv.addSchema(JSON.parse(text), name)
    known.set(text, name)
    names[place] = name
  }
  for (const operation of operations) {
    for (const [status, { content, isBinary }] of operation.responses) {
      // A schema describes JSON values; the bytes of a file are not checked.
      if (isBinary) continue
      for (const [mediaType, schema] of Object.entries(content)) {
        add(nameOf(operation, status, mediaType), schema)
        const isStream = mediaType === 'text/event-stream'
        if (isStream) add(nameOf(operation, status, mediaType, 'event'), (schema.contentSchema ?? {}) as Schema)
      }
    }
  }
  const code = standalone.default(ajv, Object.fromEntries([...known.values()].map((name) => [name, name])))
  const link = `(require) => { const exports = {}; ${code}\nreturn exports }`
  return `{ key: ${JSON.stringify(key)}, names: ${JSON.stringify(names)}, link: ${link} }`
}

function createAjv(components: Document['components']): Ajv2020 {
  // `validateSchema` would compile JSON Schema's own schema, which takes 40 ms; Redocly lints the documents instead.
  const options = { strict: false, strictTuples: true, validateSchema: false }
  const ajv = new Ajv2020({ ...options, code: { source: true, formats: _`require("formats")` } })
  addFormats.default(ajv)
  for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format)
  return ajv.addSchema({ components }, 'document')
}

function inDocument(schema: Schema): AnySchemaObject {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"document#/'))
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
