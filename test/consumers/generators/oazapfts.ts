import { ok } from '@oazapfts/runtime'
import { type Calls, eventTypes, request } from './calls.ts'
import { defaults, getRun, queueRemoteRun, type Run, streamRunEvents } from './execution.v1/oazapfts.ts'

/** This client sends `Accept: application/json` unless another one is set. */
export const call: Calls = async (baseUrl, apiKey) => {
  Object.assign(defaults, { baseUrl, headers: { Authorization: `Bearer ${apiKey}` } })
  const queued = await ok(queueRemoteRun('greet', request))
  const stream = await streamRunEvents(queued.id, {}, { headers: { Accept: 'text/event-stream' } })
  const events = eventTypes(stream.status === 200 ? stream.data : '')
  const run: Run = await ok(getRun(queued.id))
  return { queued: queued.status, events, output: run.output }
}
