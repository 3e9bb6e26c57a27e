/** Reveals its secret in every way that a workflow can, and fails in the first attempt. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'betray',
  version: '1.0.0',
  title: 'Say a secret',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['token', 'fails'],
    properties: {
      token: { type: 'string', minLength: 8, writeOnly: true },
      nested: { type: 'object', properties: { token: { type: 'string', writeOnly: true } } },
      fails: { type: 'boolean' },
    },
  },
  output: { type: 'object' },
  retry: { maxAttempts: 2, backoffSeconds: 0 },
  async run({ variables, attempt, step, log, progress }) {
    const message = `The secrets are ${variables.token} and ${variables.nested?.token}.`
    log(message)
    log(JSON.stringify(variables))
    // biome-ignore lint/suspicious/noConsole: what a workflow writes to the console belongs to its run's log
    console.error(message)
    process.stdout.write(`${message}\n`)
    progress(10, message)
    await step('remember', () => message)
    if (variables.fails || attempt === 1) throw new Error(message, { cause: new Error(message) })
    return { said: message, [message]: [message] }
  },
})
