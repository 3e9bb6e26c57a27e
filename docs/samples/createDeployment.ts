import { readFileSync } from 'node:fs'
import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// `workflows build` of the command line writes deployment.json from a directory of workflows.
const body = JSON.parse(readFileSync('deployment.json', 'utf8'))
const { id, workflows } = unwrap(await client.createDeployment({ body, timeoutSeconds: 120 }))
for (const workflow of workflows) console.log(id, workflow.id, workflow.version)
