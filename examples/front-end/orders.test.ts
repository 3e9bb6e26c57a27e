/** Tests of code that calls the API, against the simulator: a day passes at once. */
import { type Simulator, startSimulator } from 'execution-service/simulator'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let simulator: Simulator
const rejected = { released: false, words: 1204, note: '' }

beforeAll(async () => {
  simulator = await startSimulator({
    workflows: 'examples/workflows',
    scenarios: [
      { workflow: 'page-title', variables: { url: 'https://slow.example/' }, outcome: 'timedOut' },
      { workflow: 'page-title', error: { message: 'No page' }, firstAttempts: 2, output: { title: 'Example' } },
      {
        workflow: 'review-text',
        actions: [{ ask: { wait: 'review', answers: [{ value: { release: false }, output: rejected }] } }],
        output: { ...rejected, released: true },
      },
    ],
  })
})
beforeEach(() => simulator.reset())
afterAll(() => simulator?.stop())

async function call(path: string, method = 'GET', body?: object) {
  const response = await fetch(`${simulator.executionUrl}/v1/execution/${path}`, {
    method,
    headers: { Authorization: `Bearer ${simulator.apiKey}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return response.json()
}

const queue = (url: string, delaySeconds = 0) =>
  call(`queue-remote/page-title?delaySeconds=${delaySeconds}`, 'PUT', { variableData: { url } })

test('a run of tomorrow succeeds with its third attempt', async () => {
  const { id } = await queue('https://shop.example/', 86_400)
  expect(await call(`runs/${id}`)).toMatchObject({ status: 'queued', waitingFor: 'delay' })
  await simulator.advance({ seconds: 86_400 + 60 })
  expect(await call(`runs/${id}`)).toMatchObject({ status: 'succeeded', attempts: 3, output: { title: 'Example' } })
})

test('a run times out', async () => {
  const { id } = await queue('https://slow.example/')
  await simulator.advance({ seconds: 60 })
  expect(await call(`runs/${id}`)).toMatchObject({ status: 'timedOut', reason: 'timeLimit' })
})

test.each([true, false])('a text is released if its review says so: %s', async (release) => {
  const { id } = await call('queue-remote/review-text', 'PUT', { variableData: { path: 'README.md' } })
  await simulator.advance({ seconds: 60 })
  expect(await call(`runs/${id}`)).toMatchObject({ waitingFor: 'answer' })
  await call(`runs/${id}/waits/review`, 'PUT', { value: { release } })
  await simulator.advance({ seconds: 60 })
  expect(await call(`runs/${id}`)).toMatchObject({ status: 'succeeded', output: { released: release } })
})
