/** Requests to the thread of a world: connections are kept between requests, but not until the world closes them. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createPassOn } from '../../src/simulator/pass-on.ts'

async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  ['is kept for the next request', 60_000, 1],
  ['is closed before that when it was idle', 10, 2],
])('a connection %s', async (_, idleMilliseconds, count) => {
  const connections = new Set<unknown>()
  const world = createServer((request, response) => {
    connections.add(request.socket)
    response.end('ok')
  })
  const worldUrl = await listen(world)
  const { passOn, close } = createPassOn(idleMilliseconds)
  onTestFinished(close)
  const frontUrl = await listen(createServer((request, response) => passOn(request, response, worldUrl)))
  for (let request = 0; request < 2; request += 1) {
    expect(await (await fetch(frontUrl)).text()).toBe('ok')
    await delay(100)
  }
  expect(connections.size).toBe(count)
})
