/** Reveals its secret in every way that a workflow can, and returns its setting. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'shop',
  version: '1.0.0',
  title: 'Call a shop',
  variables: {
    type: 'object',
    additionalProperties: false,
    properties: { fails: { type: 'boolean' }, failsFirst: { type: 'boolean' }, waits: { type: 'boolean' } },
  },
  output: { type: 'object' },
  retry: { maxAttempts: 2, backoffSeconds: 1 },
  secrets: ['SHOP_TOKEN'],
  settings: { SHOP_URL: { type: 'string', format: 'uri' } },
  waits: { approval: { schema: { type: 'boolean' } } },
  async run({ variables, attempt, secrets, settings, step, log, progress, waitFor, artifact }) {
    const message = `The token is ${secrets.SHOP_TOKEN}.`
    if (variables.waits) await waitFor('approval', { title: message })
    log(message)
    log(Buffer.from(message).toString('base64'))
    process.stdout.write(`${message}\n`)
    progress(10, message)
    log(await step('remember', () => message))
    await step('report', () => secrets.SHOP_TOKEN.length)
    await artifact('names.txt', 'no secret')
    if (variables.fails || (variables.failsFirst && attempt === 1)) throw new Error(message, { cause: message })
    return { said: message, length: secrets.SHOP_TOKEN.length, last: secrets.SHOP_TOKEN.at(-1), url: settings.SHOP_URL }
  },
})
