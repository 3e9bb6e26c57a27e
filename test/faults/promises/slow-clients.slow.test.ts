/** P15: slow and idle connections are closed, and do not delay other clients. */
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { embeddedFleetStore } from '../../support/fleet-stores.ts'
import { record } from '../figures.ts'

const connectionsOfEach = 70
/** Node checks once a second, and the machine is busy. */
const toleranceSeconds = 4

interface SlowClient {
  what: string
  secondsMax: number
  /** Sent immediately; then one byte per second follows. */
  begins: string
}

function slowClients(key: string): SlowClient[] {
  const head = `PUT /v1/execution/queue-remote/greet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`
  const whole = `${head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"variableData":`
  return [
    { what: 'nothing sent', secondsMax: 10, begins: '' },
    { what: 'slow headers', secondsMax: 10, begins: `${head}X-Slow: ` },
    { what: 'slow body', secondsMax: 20, begins: whole },
  ]
}

/** Resolves with the connection's lifetime in seconds. */
function measureLifetime(port: number, { begins }: SlowClient): Promise<number> {
  return new Promise((resolve) => {
    const began = performance.now()
    const socket: Socket = connect(port, '127.0.0.1', () => void (begins && socket.write(begins)))
    const timer = begins ? setInterval(() => socket.write('a'), 1000) : undefined
    socket.on('error', () => {}).resume()
    socket.once('close', () => {
      clearInterval(timer)
      resolve((performance.now() - began) / 1000)
    })
  })
}

test('slow clients are disconnected after 10 and 20 seconds, while others are served', async (test) => {
  const fleet = await newFleet(test, embeddedFleetStore)
  const { key } = await fleet.createAccount()
  const api = await fleet.api()
  const port = Number(new URL(api.executionUrl).port)
  const slow = slowClients(key)
  const lifetimes = slow.map((kind) =>
    Promise.all(Array.from({ length: connectionsOfEach }, () => measureLifetime(port, kind))),
  )
  let waiting = true
  let slowest = 0
  const probe = async () => {
    while (waiting) {
      const began = performance.now()
      const response = await fetch(`${api.executionUrl}/v1/execution/runs`, {
        headers: { Authorization: `Bearer ${key}` },
      })
      expect(response.status).toBe(200)
      await response.arrayBuffer()
      slowest = Math.max(slowest, (performance.now() - began) / 1000)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  const probed = probe()
  const seconds = (await Promise.all(lifetimes)).map((each) => Math.max(...each))
  waiting = false
  await probed
  for (const [index, { what, secondsMax }] of slow.entries()) {
    const fault = `${connectionsOfEach} connections, ${what}`
    const figures = { seconds: seconds[index] ?? 0 }
    record({
      promise: 'P15',
      store: 'embedded',
      fault,
      figures,
      remark: `slowest other response ${slowest.toFixed(2)} s`,
    })
    expect(seconds[index]).toBeGreaterThan(secondsMax - toleranceSeconds)
    expect(seconds[index]).toBeLessThan(secondsMax + toleranceSeconds)
  }
  expect(slowest).toBeLessThan(toleranceSeconds)
})
