/** Leaks its secret in every way it can, and returns its environment. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'leak',
  version: '1.0.0',
  title: 'Leak',
  variables: {
    type: 'object',
    required: ['login'],
    properties: {
      login: { type: 'object', properties: { password: { type: 'string', writeOnly: true } } },
      fail: { type: 'boolean', default: false },
    },
  },
  output: {},
  retry: { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 1 },
  async run({ variables, attempt, log, progress, step }) {
    const password = variables.login?.password ?? ''
    log(`The password is ${password}.`)
    log(JSON.stringify(variables))
    // biome-ignore lint/suspicious/noConsole: the test searches console output, too.
    console.log(variables)
    process.stdout.write(`${password}\n`)
    progress(10, password)
    const kept = await step(`step ${password}`, () => password)
    if (variables.fail) throw new Error(`${password} was refused`)
    if (attempt === 1) throw new Error('again')
    return {
      length: password.length,
      reversed: [...kept].reverse().join(''),
      [password]: [password],
      environment: Object.keys(process.env).filter((name) => /KEY|DATABASE|CDP/.test(name)),
    }
  },
})
