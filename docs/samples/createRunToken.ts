import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// Give the token to a page: it can read and follow this run, and nothing else.
const { token, expiresAt } = unwrap(
  await client.createRunToken({ body: { runId: RUN_ID, expiresInSeconds: 600 } }),
)
console.log(token, 'expires at', expiresAt)
