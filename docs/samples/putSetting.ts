import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { name: 'SHOP_URL' }
const setting = unwrap(
  await client.putSetting({ params: { path }, body: { value: 'https://shop.example.com' } }),
)
console.log(setting.name, setting.version, setting.value)
