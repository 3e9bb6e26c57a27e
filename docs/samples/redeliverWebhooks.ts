import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', ENDPOINT_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { endpointId: ENDPOINT_ID }
const redelivery = unwrap(
  await client.redeliverWebhooks({
    params: { path },
    body: { since: '2026-11-20T09:00:00Z', status: 'failed' },
  }),
)
console.log(redelivery.count)
