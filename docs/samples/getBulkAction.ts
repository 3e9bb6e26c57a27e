import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BULK_ACTION_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const action = unwrap(
  await client.getBulkAction({ params: { path: { bulkActionId: BULK_ACTION_ID } } }),
)
console.log(action.kind, action.status, action.done, 'done', action.failed, 'failed')
