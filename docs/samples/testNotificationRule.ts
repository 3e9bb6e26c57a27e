import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RULE_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { ruleId: RULE_ID }
const message = unwrap(await client.testNotificationRule({ params: { path } }))
console.log(message.id, message.status)
