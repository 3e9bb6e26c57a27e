/** Reports values that the contract does not allow. */
import { defineWorkflow } from 'execution-service/workflow'

const half = '\ud83d'

export default defineWorkflow({
  id: 'misreport',
  version: '1.0.0',
  title: 'Report invalid values',
  variables: {
    type: 'object',
    additionalProperties: false,
    properties: { how: { enum: ['throw', 'large', 'deep', 'half'], default: 'throw' } },
  },
  output: {},
  async run({ variables, log, progress, step }) {
    log(`evil ${half}`, 'evil' as never)
    log({ toString: () => log } as never)
    log('x'.repeat(9000))
    log('x'.repeat(2_000_000))
    progress(Number.NaN, 'y'.repeat(9000))
    const names = [7, 'x'.repeat(201), half].map((name) => step(name as never, () => 1).catch(String))
    const large = step('large', () => 'x'.repeat(2 ** 20)).catch(String)
    if (variables.how === 'large') return 'x'.repeat(2 ** 20)
    if (variables.how === 'deep') return JSON.parse(`${'['.repeat(65)}${']'.repeat(65)}`)
    if (variables.how === 'half')
      return { [`name ${half}`]: `${half} \\ud83d`, refused: await Promise.all([...names, large]) }
    throw Object.assign(new Error('z'.repeat(9000)), { name: 42 })
  },
})
