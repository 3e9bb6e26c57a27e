import { defineWorkflow } from 'execution-service/workflow'
import { Type } from 'typebox'

const approval = { schema: Type.Object({ approved: Type.Boolean(), by: Type.Optional(Type.String()) }) }
const code = { schema: Type.Object({ pin: Type.String({ writeOnly: true }), hint: Type.String() }) }
const stop = { schema: Type.Boolean() }

/** Waits in different ways. Its output lists what has executed, in all of its parts. */
export default defineWorkflow({
  id: 'waits',
  version: '1.0.0',
  title: 'Waits',
  variables: Type.Object({
    how: Type.String(),
    seconds: Type.Optional(Type.Number()),
    count: Type.Optional(Type.Integer()),
    depth: Type.Optional(Type.Integer()),
  }),
  output: Type.Any(),
  waits: { approval, code, stop },
  retry: { maxAttempts: 2, backoffSeconds: 0 },
  async run({ variables, step, sleep, waitFor, call, log, attempt }) {
    const { how, seconds = 0, count = 1, depth = 0 } = variables
    log(`part of attempt ${attempt}`)
    switch (how) {
      case 'sleep': {
        const before = await step('before', () => 'once')
        await sleep('pause', { seconds })
        return [before, await step('after', () => 'later')]
      }
      case 'answer': {
        const answer = await waitFor('approval', {
          title: 'Refund?',
          timeoutSeconds: seconds || 3600,
          show: { amount: 5 },
        })
        return { answer }
      }
      case 'secret': {
        const answer = await waitFor('code')
        const pin = answer.ok ? answer.value.pin : ''
        log(`The pin is ${pin}.`)
        await waitFor('stop', { title: `Stop ${pin}?`, show: { pin } })
        log(`After another wait it is ${encodeURIComponent(pin)}.`)
        if (depth > 0) throw new Error(`Wrong: ${pin}`)
        return { answer, length: pin.length }
      }
      case 'race': {
        const winner = await Promise.race([
          waitFor('approval').then(({ ok }) => `answer ${ok}`),
          sleep('limit', { seconds }).then(() => 'limit'),
        ])
        const rest = await Promise.all([sleep('long', { seconds: seconds + 30 }), waitFor('stop')])
        return { winner, rest: rest.length }
      }
      case 'call': {
        const outputs = await Promise.all(
          Array.from({ length: count }, (_, index) => call(`child-${index}`, 'waits', { how: 'child', count: index })),
        )
        return outputs
      }
      case 'child':
        return count * 2
      case 'failingCall':
        return call('child', 'waits', { how: 'fail' }).catch(
          (error) => `${error.name} ${error.status} ${error.error.message}`,
        )
      case 'fail':
        throw new Error('The child fails.')
      case 'nested':
        if (depth === 0) return 'bottom'
        return call('next', 'waits', { how: 'nested', depth: depth - 1 })
      case 'failAfterWait': {
        await sleep('pause', { seconds })
        if (attempt === 1) throw new Error('The first attempt fails.')
        return attempt
      }
      case 'undeclared':
        return waitFor('nothing' as 'stop')
      case 'tooLong':
        return sleep('pause', { days: 400 })
      case 'unknownWorkflow':
        return call('child', 'no-such-workflow')
      case 'timeoutOfStep': {
        const slow = step('slow', () => new Promise((resolve) => setTimeout(resolve, 30_000).unref()))
        return Promise.race([slow, sleep('limit', { seconds }).then(() => 'limit')])
      }
    }
    throw new Error(`There is no way ${how}.`)
  },
})
