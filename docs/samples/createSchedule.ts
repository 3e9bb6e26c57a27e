import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const schedule = unwrap(
  await client.createSchedule({
    body: {
      workflowId: 'count-words',
      variableData: { path: 'README.md' },
      cron: '0 7 * * MON-FRI',
      timeZone: 'Europe/Berlin',
      missed: 'runOnce',
      overlap: 'skip',
    },
  }),
)
console.log(schedule.id, schedule.nextRunsAt)
