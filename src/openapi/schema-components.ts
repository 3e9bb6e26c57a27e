/**
 * Turns a JSON Schema (2020-12) into components of an OpenAPI document. Tools for OpenAPI know neither `$id` nor anchors,
 * and write `$defs` as members; so each target of a `$ref` becomes a component.
 */

import { hash } from 'node:crypto'
import type { Schema } from './document.ts'
import { type Path, parsePointer, toPointer, valueAt } from './json-pointer.ts'

/** OpenAPI cannot express a keyword of the schema. */
export class SchemaError extends Error {
  /** JSON Pointer to the keyword. */
  readonly pointer: string

  constructor(path: Path, message: string) {
    super(message)
    this.pointer = toPointer(path)
  }
}

const ofValues = ['items', 'contains', 'additionalProperties', 'unevaluatedItems', 'unevaluatedProperties']
const withSchema = [...ofValues, 'propertyNames', 'if', 'then', 'else', 'not', 'contentSchema']
const withList = ['prefixItems', 'allOf', 'anyOf', 'oneOf']
const withNames = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']

/** Keywords by what they contain: one schema, a list of schemas, or schemas by name. */
const contents = new Map<string, 'schema' | 'list' | 'names'>([
  ...withSchema.map((keyword) => [keyword, 'schema'] as const),
  ...withList.map((keyword) => [keyword, 'list'] as const),
  ...withNames.map((keyword) => [keyword, 'names'] as const),
])

/** They identify schemas within the schema, and mean nothing once its references are those of the document. */
const identifying = ['$schema', '$id', '$anchor', '$dynamicAnchor', '$vocabulary', '$defs', 'definitions', '~standard']

/** Keywords that describe a value without restricting it. */
const annotations = ['title', 'description', 'default', 'deprecated', 'examples', 'readOnly', 'writeOnly', '$comment']

/** Text that generators copy into comments. */
const commented = ['title', 'description', '$comment']

/** Text that cannot end a comment, or be an expression of a template literal. In Markdown, the backslash changes nothing. */
export function toCommentText(text: string): string {
  return text.replaceAll('*/', '*\\/').replaceAll('${', '$\\{')
}

/** A pattern that cannot end a comment. Some generators add a backslash to each slash, also to one that has it. */
function toCommentPattern(pattern: string): string {
  return pattern.replaceAll('*/', '*\\x2F')
}

/**
 * A closed tuple by its length: `items: false` makes generators write `never[]` or `void`, and the readers of draft-07, for
 * whom `items` is about each item, refuse it.
 */
function withoutClosingItems({ items, ...others }: Schema): Schema {
  const { prefixItems, maxItems } = others
  if (items !== false || !Array.isArray(prefixItems)) return items === undefined ? others : { ...others, items }
  return { ...others, maxItems: Math.min(Number(maxItems ?? prefixItems.length), prefixItems.length) }
}

/** What replaces keywords that OpenAPI lacks, by keyword. */
const advice: Record<string, string> = {
  $dynamicRef: 'Use $ref.',
  $recursiveRef: 'Use $ref.',
  dependencies: 'Use dependentRequired or dependentSchemas.',
}

/** Changes a schema whose references have been replaced. `path` leads to it within the original schema. */
type Change = (schema: Schema, path: Path) => Schema

/**
 * The components by name. The first, of the given name, describes the whole value.
 *
 * @param change is applied to every schema, those within it first.
 * @param place where references find the components.
 * @throws {SchemaError}
 */
export function toComponents(
  root: Schema,
  name: string,
  change: Change = (schema) => schema,
  place = '#/components/schemas/',
): Map<string, Schema> {
  const index = indexSchemas(root)
  const names = new Map<unknown, string>([[root, name]])
  const taken = new Set([plain(name)])
  const components = new Map<string, Schema>()
  const waiting: { schema: unknown; path: Path }[] = [{ schema: root, path: [] }]

  const nameOf = ({ schema, path }: Target): string => {
    const known = names.get(schema)
    if (known !== undefined) return known
    const own = nameWithin(name, path)
    let free = own
    for (let count = 2; taken.has(plain(free)); count++) free = `${own}_${count}`
    taken.add(plain(free))
    names.set(schema, free)
    waiting.push({ schema, path })
    return free
  }
  const rewrite = (value: unknown, path: Path): unknown => {
    // In lists, Redocly accepts only objects.
    if (!isSchema(value)) return typeof path.at(-1) === 'number' ? booleanSchema(value) : value
    const described = Object.entries(value).filter(([keyword]) => !identifying.includes(keyword))
    const { $ref, nullable, ...others } = withoutClosingItems(mapSchemas(Object.fromEntries(described), path, rewrite))
    if (isSchema(others.discriminator)) others.discriminator = toDiscriminator(others.discriminator, value, path)
    for (const keyword of commented) {
      if (typeof others[keyword] === 'string') others[keyword] = toCommentText(others[keyword])
    }
    if (typeof others.pattern === 'string') others.pattern = toCommentPattern(others.pattern)
    if (nullable === true && others.type !== undefined) others.type = [others.type, 'null'].flat()
    if (typeof $ref !== 'string') return change(others, path)
    const reference = { $ref: `${place}${nameOf(resolveReference(index, value, $ref, path))}` }
    const isRestricted = Object.keys(others).some((keyword) => !annotations.includes(keyword))
    // Tools ignore what stands next to a `$ref`.
    if (!isRestricted) return change({ ...others, ...reference }, path)
    return change({ ...others, allOf: [...((others.allOf as unknown[]) ?? []), reference] }, path)
  }

  /** Its mapping has references, too. */
  const toDiscriminator = ({ mapping, ...others }: Schema, schema: Schema, path: Path): Schema => {
    const entries = Object.entries(isSchema(mapping) ? mapping : {})
    const mapped = entries.map(([name, $ref]) => {
      const target = resolveReference(index, schema, String($ref), [...path, 'discriminator', 'mapping', name])
      return [name, `${place}${nameOf(target)}`]
    })
    return { ...others, ...(mapped.length > 0 && { mapping: Object.fromEntries(mapped) }) }
  }

  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const rewritten = rewrite(next.schema, next.path)
    components.set(names.get(next.schema) ?? '', isSchema(rewritten) ? rewritten : booleanSchema(rewritten))
  }
  return components
}

/** The schema as an object, where a boolean is not allowed. */
export function booleanSchema(value: unknown): Schema {
  return value === false ? { not: {} } : {}
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Copies a schema with each schema directly within it replaced. */
export function mapSchemas(schema: Schema, path: Path, map: (value: unknown, path: Path) => unknown): Schema {
  const copy = { ...schema }
  for (const keyword of Object.keys(schema)) {
    const kind = contents.get(keyword)
    if (kind === undefined) continue
    const value = schema[keyword]
    const within = [...path, keyword]
    if (kind === 'schema') copy[keyword] = map(value, within)
    else if (kind === 'list' && Array.isArray(value)) copy[keyword] = value.map((it, at) => map(it, [...within, at]))
    else if (kind === 'names' && isSchema(value)) {
      const entries = Object.entries(value).map(([name, each]) => [name, map(each, [...within, name])] as const)
      copy[keyword] = Object.fromEntries(entries)
    }
  }
  return copy
}

interface Target {
  schema: unknown
  path: Path
}

interface SchemaIndex {
  /** The URI that the references of each schema are relative to. */
  bases: Map<unknown, string>
  /** Schemas by URI: those with `$id`, and those with an anchor. */
  targets: Map<string, Target>
}

/** `$id` may be relative; nothing is ever fetched from here. */
const rootUri = 'schema://workflow/'

export function indexSchemas(root: Schema): SchemaIndex {
  const index: SchemaIndex = { bases: new Map(), targets: new Map([[rootUri, { schema: root, path: [] }]]) }
  const visit = (value: unknown, path: Path, outer: string): void => {
    if (!isSchema(value)) return
    for (const [keyword, fix] of Object.entries(advice)) {
      if (Object.hasOwn(value, keyword)) throw new SchemaError([...path, keyword], `OpenAPI has no ${keyword}. ${fix}`)
    }
    const { $id, $anchor, $dynamicAnchor } = value
    const base = typeof $id === 'string' ? (URL.parse($id, outer)?.href ?? outer) : outer
    const target = { schema: value, path }
    if (typeof $id === 'string') index.targets.set(base, target)
    for (const anchor of [$anchor, $dynamicAnchor]) {
      if (typeof anchor === 'string') index.targets.set(`${base}#${anchor}`, target)
    }
    index.bases.set(value, base)
    mapSchemas(value, path, (each, place) => visit(each, place, base))
  }
  visit(root, [], rootUri)
  return index
}

/** @throws {SchemaError} if the schema lacks the target. */
export function resolveReference(index: SchemaIndex, schema: Schema, $ref: string, path: Path): Target {
  const missing = new SchemaError([...path, '$ref'], `The schema has no ${$ref}: define it in $defs.`)
  const url = URL.parse($ref, index.bases.get(schema) ?? rootUri)
  if (!url) throw missing
  const fragment = decodeURIComponent(url.hash.slice(1))
  url.hash = ''
  const resource = index.targets.get(url.href)
  if (fragment !== '' && !fragment.startsWith('/')) {
    const anchored = index.targets.get(`${url.href}#${fragment}`)
    if (anchored) return anchored
  } else if (resource) {
    const found = valueAt(resource.schema, fragment)
    // Anything else, such as the value of `const`, is no schema, although a pointer may lead to it.
    if (typeof found === 'boolean' || index.bases.has(found))
      return { schema: found, path: [...resource.path, ...parsePointer(fragment)] }
  }
  throw missing
}

/**
 * `['$defs', 'postal address']` → `X_postal_address`; other places are named by their whole path. Generators write
 * `CheckOutput_Run` and `Check_Output_run` alike, so a definition with such a word gets a part of its name's hash.
 */
function nameWithin(name: string, path: Path): string {
  const isDefinition = path.length === 2 && ['$defs', 'definitions'].includes(String(path[0]))
  const words = (isDefinition ? path.slice(1) : path).flatMap((part) => String(part).match(/[A-Za-z0-9]+/g) ?? [])
  const own = [name, ...words].join('_')
  return ambiguous.test(plain(words.join(''))) ? `${own}_${hash('sha256', own, 'hex').slice(0, 8)}` : own
}

/** Words between the parts of a component's name. */
const ambiguous = /variables|output|run/

/** What remains of a name in generators that write names in their own case. */
function plain(name: string): string {
  return name.replaceAll('_', '').toLowerCase()
}

// A workflow in an OpenAPI document: the names that stand for it, and the components of its variables and output.

/** What the documents need to know of a workflow. */
interface DescribedWorkflow {
  id: string
  variables: Schema
  output: Schema
  waits?: Readonly<Record<string, { schema: Schema }>>
}

/** `count-words`: each word begins with a letter, so that capitals separate the words of a name as hyphens do. */
const plainId = /^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$/

/**
 * The operationId of a workflow's operation, and the prefix of its components. Both depend on the id alone, so other
 * workflows never change them. Ids that would share a name, such as `count-words` and `count_words`, and those that
 * begin with `remote`, as `queueRemoteRun` and later operations of v1 do, or whose run would be the `ScheduledRun` of
 * v1, get a part of their hash.
 */
export function workflowNames(id: string): { operationId: string; component: string } {
  const component = componentName(id, plainId.test(id) && !/^(remote\b|scheduled$)/.test(id))
  return { operationId: `queue${component}`, component }
}

/** `managerApproval`: names in JSON and in code begin a word with a capital. */
const plainName = /^[a-z][a-z0-9]*([A-Z][a-z0-9]*)*$/

/** The operationId of the operation that answers a declared wait. It depends on the name alone. */
export function waitOperationId(name: string): string {
  return `completeWait${componentName(name, plainName.test(name))}`
}

/** @param isUnique whether the words of the text suffice. */
function componentName(text: string, isUnique: boolean): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return isUnique ? name : `${name}_${hash('sha256', text, 'hex').slice(0, 8)}`
}

export type Components = Map<string, Schema>

/** The components of `variableData` in a request; the first describes all variables. @throws {SchemaError} */
export function variableComponents({ id, variables }: DescribedWorkflow): Components {
  return toComponents(variables, `${workflowNames(id).component}_Variables`, requireNoDefaults)
}

/** The components of an answer that a run of the workflow waits for; the first describes all of it. @throws {SchemaError} */
export function answerComponents({ id, waits = {} }: DescribedWorkflow, name: string): Components {
  const lettersOf = (text: string) => text.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  const letters = lettersOf(name)
  const isTaken = Object.keys(waits).some((other) => other !== name && lettersOf(other) === letters)
  const isUnique = /^[a-z]/.test(letters) && !isTaken && !ambiguous.test(letters)
  const component = `${workflowNames(id).component}_RunAnswer_${componentName(name, isUnique)}`
  return toComponents(waits[name]?.schema ?? {}, component, requireNoDefaults)
}

/**
 * The components of the output of a run that has succeeded; the first describes all of it.
 *
 * @param mask replaces secrets.
 * @throws {SchemaError}
 */
export function outputComponents({ id, output }: DescribedWorkflow, mask: string): Components {
  return toComponents(output, `${workflowNames(id).component}_Output`, (schema) => {
    const isMasked = (part: unknown) => Object(part).const === mask
    const isSecret = schema.writeOnly === true || (Array.isArray(schema.allOf) && schema.allOf.some(isMasked))
    if (!isSecret) return schema
    const { title, description } = schema
    return {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      type: 'string',
      const: mask,
    }
  })
}

/** The service fills defaults in before it validates, so a member that has one may be absent. */
function requireNoDefaults(schema: Schema): Schema {
  const { required, properties } = schema
  if (!Array.isArray(required) || typeof properties !== 'object' || properties === null) return schema
  const needed = required.filter((name) => {
    const property = Object.hasOwn(properties, name) ? (properties as Schema)[name] : undefined
    return !(typeof property === 'object' && property !== null && 'default' in property)
  })
  const { required: _, ...others } = schema
  return needed.length === 0 ? others : { ...schema, required: needed }
}
