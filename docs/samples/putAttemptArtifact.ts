import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, attempt: 1, artifactName: 'invoice.txt' }
const body = { mediaType: 'text/plain', content: 'SGVsbG8=', evidence: false } as const
unwrap(await client.putAttemptArtifact({ params: { path }, body }))
console.log('Stored')
