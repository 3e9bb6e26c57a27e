/** A workflow in an OpenAPI document: the names that stand for it, and the components of its variables and output. */
import { hash } from 'node:crypto'
import type { Schema } from './document.ts'
import { toComponents } from './schema-components.ts'

/** What the documents need to know of a workflow. */
export interface DescribedWorkflow {
  id: string
  variables: Schema
  output: Schema
}

/** `count-words`: each word begins with a letter, so that capitals separate the words of a name as hyphens do. */
const plainId = /^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$/

/**
 * The operationId of a workflow's operation, and the prefix of its components. Both depend on the id alone, so other
 * workflows never change them. Ids that would share a name, such as `count-words` and `count_words`, and those that
 * begin with `remote`, as `queueRemoteRun` and later operations of v1 do, get a part of their hash.
 */
export function workflowNames(id: string): { operationId: string; component: string } {
  const words = id.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  const isPlain = plainId.test(id) && words[0] !== 'remote'
  const component = isPlain ? name : `${name}_${hash('sha256', id, 'hex').slice(0, 8)}`
  return { operationId: `queue${component}`, component }
}

/** Schemas by the name of their component. */
export type Components = Map<string, Schema>

/** The components of `variableData` in a request; the first describes all variables. @throws {SchemaError} */
export function variableComponents({ id, variables }: DescribedWorkflow): Components {
  return toComponents(variables, `${workflowNames(id).component}.Variables`, requireNoDefaults)
}

/**
 * The components of the output of a run that has succeeded; the first describes all of it.
 *
 * @param mask replaces secrets.
 * @throws {SchemaError}
 */
export function outputComponents({ id, output }: DescribedWorkflow, mask: string): Components {
  return toComponents(output, `${workflowNames(id).component}.Output`, (schema) => {
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
