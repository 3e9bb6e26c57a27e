import { writeFile } from 'node:fs/promises'
import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '', ARTIFACT_NAME = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, artifactName: ARTIFACT_NAME }
const file = unwrap(await client.getRunArtifact({ params: { path } }))
await writeFile(ARTIFACT_NAME, file.stream())
console.log('Wrote', ARTIFACT_NAME)
