import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

const context = unwrap(await client.createBrowserContext({ body: { name: 'Shop, signed in' } }))
console.log(context.id, context.status, context.name)
