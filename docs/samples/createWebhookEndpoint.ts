import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const body = {
  url: 'https://example.com/hooks',
  events: ['run.succeeded' as const, 'run.failed' as const],
}
const endpoint = unwrap(await client.createWebhookEndpoint({ body }))
// Store the secret now: it is not shown again.
console.log(endpoint.id, endpoint.secret)
