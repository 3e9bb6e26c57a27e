/** A service with a workflow of two steps, for tests of traces and metrics. */
import type { TestContext } from 'vitest'
import { newInstallation } from './installation.ts'
import { writeModules } from './worker.ts'

/** The secret variable of every run. */
export const secret = 'correct-horse-battery'

/** The first attempt fails in the second step. */
const workflow = `export default {
  id: 'two-steps', version: '1.0.0', title: 'Two steps', output: {}, retry: { maxAttempts: 2, backoffSeconds: 0 },
  variables: { type: 'object', properties: { token: { type: 'string', writeOnly: true } } },
  async run({ step, attempt, variables }) {
    await step('first', () => 1)
    await step('second', () => {
      if (attempt === 1) throw new Error('Failed with ' + variables.token)
      return 2
    })
    return null
  },
}
`

/** Starts the service. `run` queues a run and waits for its end. */
export async function startTwoStepService(test: TestContext, changes: Record<string, string>) {
  const WORKFLOWS_DIR = await writeModules(test, { 'two-steps.ts': workflow })
  const installation = await newInstallation({ WORKFLOWS_DIR, ...changes })
  test.onTestFinished(installation.remove)
  const service = await installation.start()
  const { key } = await installation.createAccount()
  const run = async (header: Record<string, string> = {}) => {
    const url = `${service.executionUrl}/v1/execution/queue-remote/two-steps`
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', Prefer: 'wait=30', ...header }
    const body = JSON.stringify({ variableData: { token: secret } })
    const response = await fetch(url, { method: 'PUT', headers, body })
    return { status: response.status, run: (await response.json()) as { id: string; status: string } }
  }
  return { installation, service, key, run }
}
