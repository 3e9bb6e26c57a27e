import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const { data } = unwrap(await client.listNotificationRules())
for (const rule of data) console.log(rule.id, rule.name, rule.lastMessage?.status)
