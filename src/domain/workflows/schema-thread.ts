/** A thread that compiles schemas for the thread which serves requests. */
import { parentPort, workerData } from 'node:worker_threads'
import { compileToCode, InvalidSchema } from './compile-schema.ts'
import type { CompiledInThread } from './compiled-schemas.ts'
import type { JsonSchema } from './workflow.ts'

for (const [index, schema] of (workerData as JsonSchema[]).entries()) {
  const message: CompiledInThread = { index }
  try {
    message.code = compileToCode(schema)
  } catch (error) {
    if (!(error instanceof InvalidSchema)) throw error
  }
  parentPort?.postMessage(message)
}
