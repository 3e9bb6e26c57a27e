import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// Send the link to the person who decides: it takes one answer.
const { url, expiresAt } = unwrap(
  await client.createWaitLink({
    params: { path: { runId: RUN_ID, name: 'approval' } },
    body: { expiresInSeconds: 86400 },
  }),
)
console.log(url, 'expires at', expiresAt)
