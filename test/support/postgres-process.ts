/** A process that starts a PostgreSQL, says where, and waits for its end. */
import { startPostgres } from './postgres-server.ts'

const server = await startPostgres()
process.send?.({ pid: server.pid(), dataDirectory: server.dataDirectory })
