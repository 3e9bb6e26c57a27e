import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', SHOP_TOKEN = '4f1c0d0f2c5b1f0d8a6de21c0a3a3a1c' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { name: 'SHOP_TOKEN' }
const secret = unwrap(await client.putSecret({ params: { path }, body: { value: SHOP_TOKEN } }))
console.log(secret.name, secret.version)
