import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const body = {
  name: 'Failed runs',
  events: ['run.failed' as const],
  channel: 'slack' as const,
  url: 'https://hooks.slack.com/services/T000/B000/XXXX',
}
const rule = unwrap(await client.createNotificationRule({ body }))
console.log(rule.id, rule.host)
