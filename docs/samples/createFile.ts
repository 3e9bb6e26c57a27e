import { openAsBlob } from 'node:fs'
import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', FILE_NAME = 'invoice.pdf' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const body = await openAsBlob(FILE_NAME, { type: 'application/pdf' })
const file = unwrap(await client.createFile({ params: { query: { name: FILE_NAME } }, body }))
console.log(file.id, file.bytes)
