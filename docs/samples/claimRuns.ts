import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', WORKER_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { workerId: WORKER_ID }
const claims = unwrap(
  await client.claimRuns({
    params: { path },
    body: { countMax: 4, waitSeconds: 30, executing: [] },
  }),
)
for (const claim of claims?.data ?? []) console.log(claim.runId, claim.attempt, claim.variableData)
