import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', DEPLOYMENT_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { deploymentId: DEPLOYMENT_ID }
const deployment = unwrap(
  await client.activateDeployment({ params: { path }, body: { allowBreaking: true } }),
)
console.log(deployment.id, deployment.activatedAt)
