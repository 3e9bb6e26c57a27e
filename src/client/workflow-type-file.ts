/** Writes the TypeScript file with the variables, outputs and answers of workflows, by openapi-typescript. */
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'

type Schema = Record<string, unknown>

/** The names of a workflow's components. */
export interface TypeNames {
  variables: string
  output: string
  /** By the name of the wait. */
  answers: Map<string, string>
}

export interface DescribedTypes {
  /** By the id of the workflow. */
  workflows: Map<string, TypeNames>
  /** Schemas of variables and answers by the name of their component, with those that they refer to. */
  inputs: Map<string, Schema>
  outputs: Map<string, Schema>
}

export async function writeTypeFile({ workflows, inputs, outputs }: DescribedTypes): Promise<string> {
  const schemas = Object.fromEntries([
    ...[...inputs].map(([name, schema]) => [name, mapSchemas(schema, (each) => withoutStricterTypes(each, true))]),
    ...[...outputs].map(([name, schema]) => [name, mapSchemas(schema, (each) => withoutStricterTypes(each, false))]),
  ])
  const document = { openapi: '3.1.0', info: { title: '', version: '' }, paths: {}, components: { schemas } }
  // A member with a default may be absent: the service fills it in.
  const types = await openapiTypescript(document as unknown as OpenAPI3, { defaultNonNullable: false })
  const members = [...workflows].map(([id, names]) => {
    const type = (name: string) => `components["schemas"][${JSON.stringify(name)}]`
    const answers = [...names.answers].map(([name, answer]) => `${JSON.stringify(name)}: ${type(answer)}`)
    const ofAnswers = answers.length === 0 ? '' : `; answers: { ${answers.join('; ')} }`
    return `    ${JSON.stringify(id)}: { variables: ${type(names.variables)}; output: ${type(names.output)}${ofAnswers} };\n`
  })
  return `// Written by \`execution-service-client types\`. Do not edit: write it again when workflows change.

/** Workflows by id, for \`createExecutionClient<Workflows>\`. */
export interface Workflows {
${members.join('')}}

${astToString(types)}`
}

/** Applies a change to a schema and all schemas within it, those within first. */
function mapSchemas(value: unknown, change: (schema: Schema) => Schema): unknown {
  if (!isSchema(value)) return value
  const map = (each: unknown): unknown => mapSchemas(each, change)
  const mapped = Object.entries(value).map(([keyword, content]): [string, unknown] => {
    if (dataKeywords.includes(keyword)) return [keyword, content]
    if (mapKeywords.includes(keyword) && isSchema(content)) {
      return [keyword, Object.fromEntries(Object.entries(content).map(([name, each]) => [name, map(each)]))]
    }
    return [keyword, Array.isArray(content) ? content.map(map) : map(content)]
  })
  return change(Object.fromEntries(mapped))
}

/** Their values are no schemas, whatever they look like. */
const dataKeywords = ['const', 'enum', 'default', 'examples', 'required', 'type']
const mapKeywords = ['properties', 'patternProperties', 'dependentSchemas']

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * openapi-typescript writes some types that refuse values that the schema accepts. The changed schema accepts at least the
 * same values, and its type does too.
 *
 * @param isOpen whether members that the schema does not list are accepted, if it does not forbid them.
 */
function withoutStricterTypes(schema: Schema, isOpen: boolean): Schema {
  return withOpenObjects(withArrays(schema), isOpen)
}

/** A tuple would refuse shorter and longer arrays. */
function withArrays(schema: Schema): Schema {
  const { prefixItems, items, minItems = 0, maxItems, ...others } = schema
  if (!Array.isArray(prefixItems)) return typeof items === 'boolean' ? { ...others, items: {} } : schema
  const isClosed = items === false || Number(maxItems ?? Number.POSITIVE_INFINITY) <= prefixItems.length
  const isTuple = isClosed && Number(minItems) >= prefixItems.length
  if (isTuple) return schema
  const rest = isClosed ? [] : [isSchema(items) ? items : {}]
  return { ...others, items: { anyOf: [...prefixItems, ...rest] } }
}

function withOpenObjects(schema: Schema, isOpen: boolean): Schema {
  const { properties, patternProperties, additionalProperties, unevaluatedProperties, type } = schema
  const isObject = isSchema(properties) || isSchema(patternProperties) || [type].flat().includes('object')
  if (!isObject) return schema
  const members = isSchema(properties) ? properties : {}
  const names = Array.isArray(schema.required) ? schema.required.map(String) : []
  const required = names.filter((name) => !Object.hasOwn(members, name)).map((name) => [name, {}] as const)
  const { patternProperties: _, ...others } = schema
  const all = { ...members, ...Object.fromEntries(required) }
  const hasMembers = Object.keys(all).length > 0
  const described = { ...others, ...(hasMembers && { properties: all }) }
  const isClosed = !isSchema(patternProperties) && (additionalProperties === false || unevaluatedProperties === false)
  if (isClosed) return withClosedParts(described)
  // An index signature of another type would conflict with the types of the properties.
  if (isSchema(additionalProperties) && !hasMembers && !isSchema(patternProperties)) return described
  if (hasMembers && !isOpen) return { ...described, additionalProperties: false }
  const open = { ...described, additionalProperties: true }
  opened.add(open)
  return open
}

/** Schemas that were given `additionalProperties: true` here. */
const opened = new WeakSet<object>()

/** `unevaluatedProperties: false` also closes the schemas that the schema is composed of, unless they are references. */
function withClosedParts(schema: Schema): Schema {
  const lists = ['allOf', 'anyOf', 'oneOf'].filter((keyword) => Array.isArray(schema[keyword]))
  const closed = lists.map((keyword) => {
    const parts = (schema[keyword] as Schema[]).map((part) => {
      const { additionalProperties: _, ...others } = part
      return opened.has(part) ? others : part
    })
    return [keyword, parts]
  })
  return { ...schema, ...Object.fromEntries(closed), additionalProperties: false }
}
