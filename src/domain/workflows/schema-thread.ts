/** A thread that compiles schemas for the thread which serves requests. */
import { parentPort, workerData } from 'node:worker_threads'
import { compileToCode, InvalidSchema } from './compile-schema.ts'
import type { CompiledInThread } from './compiled-schemas.ts'
import type { JsonSchema } from './workflow.ts'

function compile(schema: JsonSchema, index: number): CompiledInThread {
  try {
    return { index, code: compileToCode(schema) }
  } catch (error) {
    if (error instanceof InvalidSchema) return { index }
    throw error
  }
}

for (const [index, schema] of (workerData as JsonSchema[]).entries()) parentPort?.postMessage(compile(schema, index))
