import { type Calls, eventTypes, request } from './calls.ts'
import { createApiClient } from './execution.v1/openapi-zod-client.ts'

/** This client validates every response by the document's schemas. */
export const call: Calls = async (baseUrl, apiKey) => {
  const client = createApiClient(baseUrl, { axiosConfig: { headers: { Authorization: `Bearer ${apiKey}` } } })
  const queued = await client.queueRemoteRun(request, { params: { workflowId: 'greet' } })
  const params = { runId: queued.id }
  const events = eventTypes(await client.streamRunEvents({ params }))
  const { output } = await client.getRun({ params })
  return { queued: queued.status, events, output }
}
