import { createBrowserContextClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

for await (const context of client.browserContexts.list({ limit: 100 })) {
  console.log(context.id, context.status, context.name)
}
