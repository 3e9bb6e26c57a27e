/** Calls of a worker outside of the service: repeated until the service has answered, and never after a refusal. */
import type { Socket } from 'node:net'
import { expect, type TestContext, test } from 'vitest'
import { createWorkerCalls } from '../../src/worker/remote/worker-calls.ts'
import { type Act, respond, startScriptedServer } from '../client/scripted-server.ts'

async function startService(test: TestContext, ...acts: Act[]) {
  const { url, requests } = await startScriptedServer(test, ...acts)
  const warned: string[] = []
  const log = { warn: ({ detail }: { detail: string }) => void warned.push(detail) }
  return {
    calls: createWorkerCalls({ baseUrl: `${url}/prefix/`, apiKey: 'key', log, onRefused: () => {} }),
    requests,
    warned,
  }
}

const reset: Act = ({ socket }) => socket?.resetAndDestroy()
const step = { params: { path: { runId: 'r', attempt: 1, stepName: 'a/b' } }, body: { value: 1 } }

test('a report is repeated through broken connections and errors, with the same content', async (test) => {
  const busy = respond(429, undefined, { 'Retry-After': '0' })
  const { calls, requests, warned } = await startService(test, reset, respond(500), busy, respond(204))
  expect((await calls.putRunStep(step)).error).toBeUndefined()
  expect(requests).toHaveLength(4)
  for (const { method, path, headers, body } of requests) {
    expect(`${method} ${path}`).toBe('PUT /prefix/v1/execution/runs/r/attempts/1/steps/a%2Fb')
    expect({ ...JSON.parse(body), key: headers.authorization }).toEqual({ value: 1, key: 'Bearer key' })
  }
  expect(warned).toHaveLength(3)
})

test('a refusal is final', async (test) => {
  const problem = { type: '/docs/errors#lease-lost', title: 'Lease lost', status: 409, detail: 'It is over.' }
  const { calls, requests } = await startService(test, respond(409, problem))
  expect((await calls.putRunStep(step)).error).toMatchObject(problem)
  expect(requests).toHaveLength(1)
})

test('a call with a limit fails, and one that is aborted is not sent', async (test) => {
  const { calls, requests } = await startService(test, reset)
  const claim = { params: { path: { workerId: 'w' } }, body: { countMax: 1, waitSeconds: 0, executing: [] } }
  expect((await calls.claimRuns({ ...claim, retries: 0 })).error).toMatchObject({ status: 0 })
  expect((await calls.claimRuns({ ...claim, signal: AbortSignal.abort() })).error).toMatchObject({ status: 0 })
  expect(requests).toHaveLength(1)
})

test('a response that does not come in time counts as none, and connections are kept', async (test) => {
  const sockets: (Socket | null)[] = []
  const done: Act = (response) => {
    sockets.push(response.socket)
    respond(204)(response)
  }
  const { calls, requests } = await startService(test, () => {}, done)
  await calls.putRunStep({ ...step, timeoutSeconds: 0.1 })
  for (let count = 0; count < 2; count += 1) await calls.putRunStep(step)
  expect(requests).toHaveLength(4)
  expect(new Set(sockets).size).toBe(1)
})
