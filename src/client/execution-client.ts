/** The client of the Execution API. */
import { type ExecutionV1Operations, executionV1Operations } from '../../generated/execution.v1/client.ts'
import { operationsOf } from './call.ts'
import type { ClientOptions } from './options.ts'
import { type Runs, runsOf } from './runs.ts'

/** A client of the Execution API: a function for each operationId, and `runs` for what takes more than one request. */
export interface ExecutionClient extends ExecutionV1Operations {
  /** List all runs, follow one, wait for its end. */
  readonly runs: Runs
}

/**
 * Makes a client of the Execution API. It holds no connection and needs no closing.
 *
 * @example
 * const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey })
 * const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
 *
 * @throws {TypeError} for an empty `baseUrl`, and for an `apiKey` that is none.
 */
export function createExecutionClient(options: ClientOptions): ExecutionClient {
  const operations = operationsOf(executionV1Operations, options)
  return { ...operations, runs: runsOf(operations, options) }
}
