/**
 * The least that reading runs can cost, by `node reading-server.ts STORE LOCATION`: node:http answers with rows of the
 * service's own tables, without authentication and validation. POST sends a row to all followers. It sends its port.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

interface Rows {
  run(id: string): Promise<unknown>
  list(): Promise<unknown[]>
}

const pageSize = 50

const stores: Record<string, (location: string) => Rows> = {
  embedded(directory) {
    const database = new DatabaseSync(join(directory, 'service.db'), { readOnly: true })
    const run = database.prepare('SELECT * FROM runs WHERE id = ?')
    const list = database.prepare(`SELECT * FROM runs ORDER BY id DESC LIMIT ${pageSize}`)
    return { run: async (id) => run.get(id), list: async () => list.all() }
  },
  postgres(url) {
    const pool = new pg.Pool({ connectionString: url })
    const all = async (name: string, text: string, values: string[]) =>
      (await pool.query({ name, text: text.replace('runs', 'execution_service.runs'), values })).rows
    return {
      run: async (id) => (await all('run', 'SELECT * FROM runs WHERE id = $1', [id]))[0],
      list: () => all('list', `SELECT * FROM runs ORDER BY id DESC LIMIT ${pageSize}`, []),
    }
  },
}

const [kind = '', location = ''] = process.argv.slice(2)
const rows = stores[kind]?.(location) as Rows
const followers = new Set<ServerResponse>()

function send(to: ServerResponse, value: unknown): void {
  const text = JSON.stringify(value)
  to.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }).end(text)
}

const server = createServer(async ({ method, url = '' }, response) => {
  const [, path = '', id = ''] = url.split('/')
  if (method === 'POST') {
    const data = JSON.stringify(await rows.run(id))
    for (const each of followers) each.write(`event: log\ndata: ${data}\n\n`)
    send(response, null)
  } else if (path === 'events') {
    followers.add(response.writeHead(200, { 'Content-Type': 'text/event-stream' }))
    response.write(': follows\n\n')
    response.once('close', () => followers.delete(response))
  } else send(response, path === 'runs' ? await rows.run(id) : { data: await rows.list() })
}).listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.on('disconnect', () => process.exit())
