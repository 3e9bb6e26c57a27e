import { type Calls, eventTypes, request } from './calls.ts'
import { OpenAPI, type Run, RunsService } from './execution.v1/openapi-typescript-codegen/index.ts'

/** This client sends `Accept: application/json` unless another one is set. */
export const call: Calls = async (baseUrl, apiKey) => {
  Object.assign(OpenAPI, { BASE: baseUrl, TOKEN: apiKey })
  const queued: Run = await RunsService.queueRemoteRun('greet', request)
  OpenAPI.HEADERS = { Accept: 'text/event-stream' }
  const events = eventTypes(await RunsService.streamRunEvents(queued.id))
  OpenAPI.HEADERS = {}
  const { output } = await RunsService.getRun(queued.id)
  return { queued: queued.status, events, output }
}
