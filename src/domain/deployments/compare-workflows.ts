/** The changes between two versions of a workflow's schemas: the comparison that guards the API. */
import { isDeepStrictEqual } from 'node:util'
import {
  type Change,
  Place,
  type Sentence,
  TooMuchToCompare,
  toSentences,
  withWorkLimit,
} from '../../openapi/compare/place.ts'
import { compareSchemas } from '../../openapi/compare/schemas.ts'
import type { Document } from '../../openapi/document.ts'
import type { JsonSchema, Workflow } from '../workflows/workflow.ts'

export type Described = Pick<Workflow, 'id' | 'version' | 'variables' | 'output' | 'waits'>

/** A second in a thread. */
const threadWorkMax = 200_000

/**
 * All changes of the schemas, breaking ones and others. A new wait is none: its answer is no caller's duty.
 *
 * @param workMax schemas that the comparison of two schemas may follow. What takes more counts as breaking.
 */
export function compareWorkflows(before: Described, after: Described, workMax = threadWorkMax): Sentence[] {
  const changes: Change[] = []
  const waits = Object.entries(before.waits ?? {})
  for (const [member, direction, oldSchema, newSchema] of [
    ['variables', 'request', before.variables, after.variables],
    ['output', 'response', before.output, after.output],
    ...waits.map(([name, { schema }]) => [`waits.${name}`, 'request', schema, after.waits?.[name]?.schema] as const),
  ] as const) {
    const [was, is] = [prepare(oldSchema), prepare(newSchema)]
    const location = { subject: `\`${member}\``, pointer: '', operation: '', status: '' }
    const place = new Place(was as unknown as Document, is as unknown as Document, changes, location)
    if (newSchema === undefined) {
      place.note('breaking', 'was removed', 'New runs refuse the answer, while those of earlier versions accept it.')
      continue
    }
    try {
      const compare = () => compareSchemas(place, direction, withoutDefinitions(was), withoutDefinitions(is))
      withWorkLimit(workMax, compare)
    } catch (error) {
      if (isDeepStrictEqual(was, is)) continue
      // Otherwise a reference by anchor, or to another part than a definition.
      const isTooMuch = error instanceof TooMuchToCompare
      if (isTooMuch && workMax < threadWorkMax) throw error
      const predicate = isTooMuch ? 'is too complex to be compared' : 'has references that cannot be compared'
      place.note('breaking', predicate, 'It may have changed for callers.')
    }
  }
  return toSentences(changes, { paths: {} } as Document)
}

/** A reference with other keywords beside it applies with them, while OpenAPI lets them replace those of its target. */
function prepare(schema: unknown): JsonSchema {
  if (Array.isArray(schema)) return schema.map(prepare) as unknown as JsonSchema
  if (typeof schema !== 'object' || schema === null) return schema as unknown as JsonSchema
  const { $ref, ...others } = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, prepare(value)]))
  if (typeof $ref !== 'string') return { ...others, ...($ref !== undefined && { $ref }) } as JsonSchema
  if (Object.keys(others).length === 0) return { $ref }
  return { ...others, allOf: [...((others.allOf as unknown as unknown[]) ?? []), { $ref }] }
}

/** Definitions are compared where they are used. */
function withoutDefinitions(schema: JsonSchema): JsonSchema {
  const { $defs: _, definitions: __, $schema: ___, $id: ____, ...rest } = schema
  return rest
}
