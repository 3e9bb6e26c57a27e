import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', SETTING_NAME = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { name: SETTING_NAME }
unwrap(await client.deleteSetting({ params: { path } }))
console.log('Deleted', SETTING_NAME)
