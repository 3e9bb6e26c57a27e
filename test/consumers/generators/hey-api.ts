import { type Calls, request } from './calls.ts'
import { client } from './execution.v1/hey-api/client.gen.ts'
import { getRun, queueRemoteRun, type Run, type RunEvent, streamRunEvents } from './execution.v1/hey-api/index.ts'

export const call: Calls = async (baseUrl, auth) => {
  client.setConfig({ baseUrl, auth })
  const queued = await queueRemoteRun({ path: { workflowId: 'greet' }, body: request, throwOnError: true })
  const path = { runId: queued.data.id }
  const events: string[] = []
  const { stream } = await streamRunEvents({ path })
  // The client parses the `data` of each event, but types it as text.
  for await (const event of stream) events.push((event as unknown as RunEvent).type)
  const { data }: { data: Run } = await getRun({ path, throwOnError: true })
  return { queued: queued.data.status, events, output: data.output }
}
