import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '', VIEW_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, attempt: 1, viewId: VIEW_ID }
const control = { phase: 'free', by: null, message: null } as const
const { state, commands } = unwrap(
  await client.updateLiveView({ params: { path }, body: { control, waitForCommands: true } }),
)
console.log(state)
for (const { type, by } of commands) console.log(type, 'by', by.name)
