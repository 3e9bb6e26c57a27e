/** Has steps with side effects, an artifact and waits. Records in a file what its steps do, and which results it sees. */
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'record',
  version: '1.0.0',
  title: 'Record',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['file'],
    properties: { file: { type: 'string' } },
  },
  output: { type: 'object' },
  waits: { answer: { schema: { type: 'integer' } } },
  retry: { maxAttempts: 3, backoffSeconds: 0 },
  async run({ variables, step, log, artifact, sleep, waitFor }) {
    const write = (...words: string[]) => appendFileSync(variables.file, `${words.join(' ')}\n`)
    const act = async (name: string) => {
      const token = await step(name, () => {
        const fresh = randomUUID()
        write('done', name, fresh)
        return fresh
      })
      write('seen', name, token)
      return token
    }
    const first = await act('first')
    log(`The first token is ${first}`)
    await artifact('first.txt', first)
    await sleep('pause', { seconds: 1 })
    const answer = await waitFor('answer')
    return { first, second: await act('second'), answer: answer.ok ? answer.value : null }
  },
})
