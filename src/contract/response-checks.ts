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
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js'
import { _ } from 'ajv/dist/core.js'
import standalone from 'ajv/dist/standalone/index.js'
import addFormats from 'ajv-formats'
import type { Document, Schema } from '../openapi/document.ts'
import type { Operation } from '../openapi/served-operations.ts'
import { closeComponents, closeSchema } from './closed-schemas.ts'
import { type Check, formats, type Link, linkChecks } from './compiled-checks.ts'

/** The check of a body with the media type, or of the data of one server-sent event. */
export type FindCheck = (operation: Operation, status: number, mediaType: string, part?: 'event') => Check

/** What the file exports. */
interface CompiledChecks {
  /** Of everything that the checks are compiled from. */
  key: string
  /** Names of checks by `nameOf`. */
  names: Readonly<Record<string, string>>
  link: Link
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
  const byName = linkChecks(link)
  const find: FindCheck = (...place) => byName.get(names[nameOf(...place)] ?? '') as Check
  linked.set(document, find)
  return find
}

function nameOf({ id }: Operation, status: number, mediaType: string, part?: 'event'): string {
  return [id, status, mediaType, part].join(' ').trim()
}

/** Changes with the document, and with the code that compiles it. */
function keyOf(document: Document): string {
  const sources = ['./response-checks', './compiled-checks', './closed-schemas'].map((path) =>
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
  return `{ key: ${JSON.stringify(key)}, names: ${JSON.stringify(names)}, link: ${writeLink(ajv, [...known.values()])} }`
}

function writeLink(ajv: Ajv2020, names: readonly string[]): string {
  const code = standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name])))
  return `(require) => { const exports = {}; ${code}\nreturn exports }`
}

/**
 * A module that links the checks of the members of schemas, by `schema.member`, and of whole schemas that allow any other
 * member.
 *
 * @param details see `linkChecks`.
 */
export function writeValueChecks(document: Document, schemas: readonly string[], details: object): string {
  const ajv = createAjv(withoutTexts(document.components))
  const names = schemas.flatMap((schema) => {
    const { properties = {}, additionalProperties } = (document.components.schemas?.[schema] ?? {}) as Schema
    const isOpen = additionalProperties === true
    const members = isOpen ? [] : Object.keys(properties as object)
    const places = isOpen ? [[schema, '']] : members.map((each) => [`${schema}.${each}`, `/properties/${each}`])
    return places.map(([name = '', place = '']) => {
      ajv.addSchema({ $ref: `document#/components/schemas/${schema}${place}` }, name)
      return name
    })
  })
  return asModule(`{ details: ${JSON.stringify(details)}, link: ${writeLink(ajv, names)} }`)
}

/** Without what checks do not read, which would be in the code. */
function withoutTexts<Value>(value: Value): Value {
  const texts = ['description', 'example', 'examples', 'x-decision-reason', 'x-pattern-detail']
  const isText = (key: string, member: unknown) =>
    texts.includes(key) && (Array.isArray(member) || Object(member) !== member)
  return JSON.parse(JSON.stringify(value, (key, member) => (isText(key, member) ? undefined : member)))
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
