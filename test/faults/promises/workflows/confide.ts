/** Leaks the secret of an answer in every way a workflow can, also after another wait, and fails in the first attempt. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'confide',
  version: '1.0.0',
  title: 'Ask for a secret',
  variables: { type: 'object', additionalProperties: false },
  output: { type: 'object' },
  waits: {
    secret: {
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['token'],
        properties: { token: { type: 'string', minLength: 8, writeOnly: true } },
      },
    },
    next: { schema: { type: 'boolean' } },
  },
  retry: { maxAttempts: 2, backoffSeconds: 0 },
  async run({ attempt, call, waitFor, step, log, progress }) {
    const answer = await waitFor('secret')
    const message = answer.ok ? `The secret is ${answer.value.token}.` : 'There is none.'
    log(JSON.stringify(answer))
    process.stdout.write(`${message}\n`)
    progress(10, message)
    await step('remember', () => message)
    await waitFor('next', { title: message, show: { message, answer } })
    if (answer.ok) await call('betray', 'betray', { token: answer.value.token, fails: false })
    if (attempt === 1) throw new Error(message, { cause: new Error(message) })
    return { said: message, [message]: [message] }
  },
})
