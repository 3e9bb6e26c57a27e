/** Waits in the ways that a caller chooses. */
import { CalledRunFailed, defineWorkflow } from 'execution-service/workflow'

export const waitingWays = ['answer', 'timeout', 'sleep', 'call', 'failing call', 'race', 'undeclared'] as const

export default defineWorkflow({
  id: 'waiting',
  version: '1.0.0',
  title: 'Wait',
  variables: {
    type: 'object',
    required: ['how'],
    properties: { how: { type: 'string' }, password: { type: 'string', writeOnly: true } },
  },
  output: {},
  waits: {
    approval: {
      schema: {
        type: 'object',
        required: ['approved'],
        properties: { approved: { type: 'boolean' }, note: { type: 'string', default: 'none' } },
      },
    },
  },
  async run({ variables: { how, password }, step, sleep, waitFor, call, log }) {
    log(`part with ${password}`)
    const before = await step('before', () => 'once')
    switch (how) {
      case 'answer': {
        const answer = await waitFor('approval', { title: `For ${password}`, show: { before } })
        return [answer, await step('after', () => 'later')]
      }
      case 'timeout':
        return waitFor('approval', { timeoutSeconds: 1 })
      case 'sleep':
        await sleep('pause', { seconds: 3 })
        return step('after', () => 'later')
      case 'call':
        return Promise.all([call('first', 'waiting', { how: 'child' }), call('second', 'waiting', { how: 'child' })])
      case 'failing call':
        return call('failing', 'waiting', { how: 'failing child' }).catch((error) =>
          error instanceof CalledRunFailed ? { status: error.status, error: error.error } : String(error),
        )
      case 'race': {
        const winner = await Promise.race([
          waitFor('approval').then(() => 'answer'),
          sleep('long', { days: 30 }).then(() => 'sleep'),
        ])
        return step('after', () => winner)
      }
      case 'undeclared':
        return waitFor('approvals' as 'approval')
      case 'child':
        return 'grown'
      // So long that its caller leaves its process, as it always does in the kit.
      case 'failing child':
        await new Promise((resolve) => setTimeout(resolve, 3000))
    }
    throw new Error('The child fails.')
  },
})
