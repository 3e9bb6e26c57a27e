/** Results of tool calls that clients do not read count as their account's memory. */
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tenantLimits } from '../../src/contract/tenant-limits.ts'
import { removeDirectory, startTestService, type TestAccount, temporaryDirectory, until } from '../support/service.ts'

/** Each of these characters takes two bytes as JSON, and four in JSON within JSON: a result has 3 MB, of a socket's 4. */
const output = '"'.repeat(520_000)
/** A result has the output three times in memory. */
const fitting = Math.floor(tenantLimits.largeBytesMax / (3 * JSON.stringify(output).length))

const source = `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'large', version: '1.0.0', title: 'Large', variables: { type: 'object' }, output: { type: 'string' },
  run: () => '"'.repeat(${output.length}),
})
`
const callsPerSocket = 2
const message = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'large', arguments: {} },
})

test('results that no client reads make only the calls of their account wait', { timeout: 120_000 }, async () => {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  writeFileSync(join(directory, 'large.ts'), source)
  const service = await startTestService({ settings: { WORKFLOWS_DIR: directory } })
  onTestFinished(() => service.stop())
  const [account, other] = [await service.createAccount(), await service.createAccount()]
  const headersOf = ({ key }: TestAccount) => ({
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  })
  const call = async (caller: TestAccount) => {
    const response = await fetch(`${service.executionUrl}/mcp`, {
      method: 'POST',
      headers: headersOf(caller),
      body: message,
    })
    return JSON.parse((await response.text()).replace(/^event: message\ndata: /, '')).result
  }
  const { hostname, port, host } = new URL(service.executionUrl)
  const sockets: Socket[] = []
  for (let count = 0; count < fitting; count += 1) {
    const socket = connect(Number(port), hostname).pause()
    sockets.push(socket)
    const headers = { ...headersOf(account), Host: host, 'Content-Length': message.length }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    // The system takes the first result, and at most a part of the second.
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${message}`.repeat(callsPerSocket))
  }
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const sql = "SELECT count(*) AS count FROM runs WHERE account_id = ? AND status = 'succeeded'"
  await until('all runs end', async () => {
    const [row] = await service.rows<{ count: number }>(sql, account.id)
    return Number(row?.count) === fitting * callsPerSocket
  })
  // A result follows the end of its run a little later.
  const waiting = await until('a call waits', async () => {
    const result = await call(account)
    return result.isError && result
  })
  expect(waiting.content).toEqual([{ type: 'text', text: expect.stringContaining('has waited 10 seconds') }])
  const startedAt = performance.now()
  expect((await call(other)).structuredContent.result).toHaveLength(output.length)
  expect(performance.now() - startedAt).toBeLessThan(tenantLimits.waitMillisecondsMax)
  for (const socket of sockets) socket.destroy()
  expect((await call(account)).structuredContent.result).toHaveLength(output.length)
})
