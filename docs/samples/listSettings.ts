import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

for (let cursor: string | undefined; ; ) {
  const query = { limit: 100, ...(cursor && { cursor }) }
  const page = unwrap(await client.listSettings({ params: { query } }))
  for (const setting of page.data) console.log(setting.name, setting.version, setting.value)
  if (page.nextCursor === null) break
  cursor = page.nextCursor
}
