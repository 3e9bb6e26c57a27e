/** The PostgreSQL server for tests needs only `npm ci`, survives SIGKILL, and does not outlive the process that started it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { startPostgres } from '../support/postgres-server.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  return client
    .query(sql)
    .then(({ rows }) => rows)
    .finally(() => client.end())
}

test('the server and its data disappear with the process that started it, even after SIGKILL', async (test) => {
  const child = fork(new URL('../support/postgres-process.ts', import.meta.url), { execArgv: [] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  const [{ pid, dataDirectory }] = await once(child, 'message')
  child.kill('SIGKILL')
  await waitForProcessEnd(pid)
  await vi.waitUntil(() => !existsSync(dataDirectory), waitLimits)
})

test('the server from npm recovers its data after SIGKILL', async (test) => {
  const server = await startPostgres({ fromNpm: true, durable: true })
  test.onTestFinished(() => server.remove())
  expect(await query(server.url(), 'SHOW fsync')).toEqual([{ fsync: 'on' }])
  await query(server.url(), 'CREATE TABLE kept AS SELECT 1 AS one')
  const { pid } = server
  const killed = pid()
  await server.end('SIGKILL')
  await expect(query(server.url(), 'SELECT')).rejects.toThrow('ECONNREFUSED')
  await server.start()
  expect(pid()).not.toBe(killed)
  expect(await query(server.url(), 'SELECT one FROM kept')).toEqual([{ one: 1 }])
})

test('a server that fails to start reports the reason', async () => {
  await expect(startPostgres({ settings: { max_connections: 'many' } })).rejects.toThrow(
    /^PostgreSQL did not start:\n.*max_connections/s,
  )
})
