/** A process for tests to kill: it starts a PostgreSQL server and sends its location. */
import { startPostgres } from './postgres-server.ts'

const server = await startPostgres()
process.send?.({ pid: server.pid(), dataDirectory: server.dataDirectory })
