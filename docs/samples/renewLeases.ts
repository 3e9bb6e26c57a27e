import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '', WORKER_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { workerId: WORKER_ID }
const leases = unwrap(
  await client.renewLeases({ params: { path }, body: { leases: [{ runId: RUN_ID, attempt: 1 }] } }),
)
console.log(leases.extended, leases.cancelled, leases.lost)
