import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', SCHEDULE_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { scheduleId: SCHEDULE_ID }
const run = unwrap(await client.triggerSchedule({ params: { path } }))
console.log(run.id, run.status)
