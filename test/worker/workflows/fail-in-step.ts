/** Ends in different ways while a step runs. */
import { defineWorkflow } from 'execution-service/workflow'

const ways = {
  throw: () => {
    throw new TypeError('no connection', { cause: new Error('the host is unknown') })
  },
  exit: () => process.exit(3),
  kill: () => process.kill(process.pid, 'SIGUSR2'),
  exhaust: () => {
    for (const bytes: unknown[] = []; ; ) bytes.push(new Array(100_000).fill(Math.random()).map(String))
  },
  throwLater: () => {
    setTimeout(() => {
      throw new RangeError('thrown later')
    }, 5)
  },
  hang: () => {},
} satisfies Record<string, () => unknown>

export default defineWorkflow({
  id: 'fail-in-step',
  version: '1.0.0',
  title: 'Fail in a step',
  variables: { type: 'object', required: ['how'], properties: { how: { enum: Object.keys(ways) } } },
  output: {},
  // Filling the heap takes seconds on a busy machine.
  timeLimitSeconds: 10,
  async run({ variables, step }) {
    await step('prepare', () => null)
    await step('tried', () => Promise.reject(new Error('caught'))).catch(() => {})
    await step('connect', async () => {
      ways[variables.how as keyof typeof ways]()
      await new Promise(() => setInterval(() => {}, 1000))
    }).catch((cause: unknown) => {
      throw new Error('The page could not be read.', { cause })
    })
  },
})
