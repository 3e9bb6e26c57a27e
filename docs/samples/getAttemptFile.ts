import { writeFile } from 'node:fs/promises'
import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '', FILE_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, attempt: 1, fileId: FILE_ID }
const file = unwrap(await client.getAttemptFile({ params: { path }, parseAs: 'stream' }))
await writeFile('invoice.pdf', file)
console.log('Wrote invoice.pdf')
