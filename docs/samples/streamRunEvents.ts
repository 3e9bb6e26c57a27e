import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// Receives each event until the run has finished, and reconnects when the connection is lost.
for await (const event of client.runs.events(RUN_ID)) {
  if (event.type === 'status') console.log(event.sequence, event.status)
  if (event.type === 'log') console.log(event.sequence, event.message)
}
