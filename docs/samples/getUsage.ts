import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const query = { from: '2026-11-01', to: '2026-11-30' }
const { data, countedUntil } = unwrap(await client.getUsage({ params: { query } }))
const attempts = data.reduce((sum, row) => sum + row.attempts, 0)
console.log(`${attempts} attempts, counted until ${countedUntil}`)
