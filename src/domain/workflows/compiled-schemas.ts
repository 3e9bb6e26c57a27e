/**
 * The compiled schemas of this process, by content. Small schemas are compiled when they are first used, in some
 * milliseconds; large ones before that, in a thread: V8 and Ajv take a second for 700 members.
 */
import { hash } from 'node:crypto'
import { runInThread } from '../bounded-threads.ts'
import { type CompiledSchema, compileSchema, countSubschemas, linkCode, type SchemaCode } from './compile-schema.ts'
import type { JsonSchema } from './workflow.ts'

/** Schemas with more schemas in them are compiled in a thread. */
const inlineMax = 100

/** Schemas that are kept, so that a new version of a deployment compiles only those that have changed. */
const keptMax = 500

/** Most recently used last. */
const compiled = new Map<string, CompiledSchema>()

/** @throws {InvalidSchema} */
export function findCompiled(schema: JsonSchema): CompiledSchema {
  const key = keyOf(schema)
  if (failed.has(key)) throw new Error('A schema could not be compiled in a thread.', { cause: failed.get(key) })
  return keep(key, compiled.get(key) ?? compileSchema(schema))
}

function keyOf(schema: JsonSchema): string {
  return hash('sha256', JSON.stringify(schema))
}

function keep(key: string, found: CompiledSchema): CompiledSchema {
  compiled.delete(key)
  compiled.set(key, found)
  const [oldest = ''] = compiled.keys()
  if (compiled.size > keptMax) compiled.delete(oldest)
  return found
}

// Large schemas.

/** Schemas that a thread could not compile. Compiling them here would take as long. */
const failed = new Map<string, Error | undefined>()

/**
 * Compiles the large schemas of a list in a thread. Those that are invalid are left for `findCompiled`, which says why.
 *
 * @param accountId whose schemas they are; `null` for the installation.
 */
export async function compileLarge(schemas: readonly JsonSchema[], accountId: string | null): Promise<void> {
  const large = schemas.filter((schema) => countSubschemas(schema) > inlineMax && !compiled.has(keyOf(schema)))
  if (large.length === 0) return
  const keys = large.map(keyOf)
  const left = new Set(keys)
  const failure = await runInThread<CompiledInThread>(
    new URL('./schema-thread', import.meta.url),
    accountId,
    large,
    ({ index, code }) => {
      const key = keys[index] as string
      if (code) keep(key, linkCode(code))
      failed.delete(key)
      left.delete(key)
    },
  )
  for (const key of left) failed.set(key, failure)
}

/** A message of the thread. */
export interface CompiledInThread {
  index: number
  /** Absent if the schema is invalid. */
  code?: SchemaCode
}
