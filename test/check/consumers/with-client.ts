/** Counts words with the client of this project. `FAULT` plants one mistake. */
import { createExecutionClient } from '../../../src/client/index.ts'

const { EXECUTION_URL: baseUrl = '', API_KEY: apiKey = '', FAULT = '' } = process.env

/** Resolves to whether the words were counted. */
export async function countWords(fault: string, service: { executionUrl: string; apiKey: string }): Promise<boolean> {
  const client = createExecutionClient({
    ...{ baseUrl: service.executionUrl, apiKey: service.apiKey, timeoutSeconds: fault === 'impatient' ? 2 : 30 },
    ...(fault === 'noRetries' && { retries: 0 }),
  })
  if (fault === 'catchesAll') {
    const { data } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
    return data === undefined || data.finishedAt !== null
  }
  if (fault === 'readsOnce') {
    const { data: queued } = await client.queueRemoteRun({
      params: { path: { workflowId: 'count-words' } },
      body: { variableData: { path: 'README.md' } },
    })
    if (!queued) return false
    const { data: run } = await client.runs.wait(queued.id)
    return run !== undefined
  }
  const { data: run, error } = await client.runs.queueAndWait('count-words', { path: 'README.md' })
  if (error) return false
  return fault === 'ignoresStatus' || run.status === 'succeeded'
}

if (import.meta.main) process.exitCode = (await countWords(FAULT, { executionUrl: baseUrl, apiKey })) ? 0 : 1
