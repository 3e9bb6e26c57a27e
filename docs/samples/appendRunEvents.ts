import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, attempt: 1 }
unwrap(
  await client.appendRunEvents({
    params: { path },
    body: { position: 0, events: [{ type: 'log', level: 'info', message: 'Charging the card' }] },
  }),
)
console.log('Stored')
