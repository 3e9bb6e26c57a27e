import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', ENDPOINT_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { endpointId: ENDPOINT_ID }
const endpoint = unwrap(
  await client.updateWebhookEndpoint({
    params: { path },
    body: { events: ['run.failed', 'run.timedOut'] },
  }),
)
console.log(endpoint.id, endpoint.events)
