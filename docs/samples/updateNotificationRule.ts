import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RULE_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { ruleId: RULE_ID }
const rule = unwrap(
  await client.updateNotificationRule({
    params: { path },
    body: { events: ['run.failed', 'run.timedOut'] },
  }),
)
console.log(rule.id, rule.events)
