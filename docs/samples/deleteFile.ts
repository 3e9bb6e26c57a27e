import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', FILE_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { fileId: FILE_ID }
unwrap(await client.deleteFile({ params: { path } }))
console.log('Deleted', FILE_ID)
