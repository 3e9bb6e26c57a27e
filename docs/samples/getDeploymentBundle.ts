import { writeFile } from 'node:fs/promises'
import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', DEPLOYMENT_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { deploymentId: DEPLOYMENT_ID }
const bundle = unwrap(await client.getDeploymentBundle({ params: { path } }))
await writeFile('bundle.json.gz', bundle.stream())
console.log('Wrote bundle.json.gz')
