import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', ENDPOINT_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { endpointId: ENDPOINT_ID }
for (let cursor: string | undefined; ; ) {
  const query = { limit: 100, ...(cursor && { cursor }) }
  const page = unwrap(await client.listWebhookDeliveries({ params: { path, query } }))
  for (const delivery of page.data) console.log(delivery.id, delivery.status)
  if (page.nextCursor === null) break
  cursor = page.nextCursor
}
