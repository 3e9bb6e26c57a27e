import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', SECRET_NAME = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { name: SECRET_NAME }
unwrap(await client.deleteSecret({ params: { path } }))
console.log('Deleted', SECRET_NAME)
