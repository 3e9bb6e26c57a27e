/** Traces of a service and its worker, from the request to the steps of a workflow. */
import { expect, test } from 'vitest'
import { type CollectedSpan, startCollector } from '../support/collector.ts'
import { secret, startTwoStepService } from '../support/two-step-service.ts'

const caller = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`

/** Returns one line per span, indented below its parent, with siblings in the order of their starts. */
function printTree(spans: readonly CollectedSpan[], parent: string | undefined, depth = 0): string[] {
  const below = spans.filter(({ parentSpanId }) => parentSpanId === parent)
  const inOrder = below.sort((a, b) => a.startMilliseconds - b.startMilliseconds)
  return inOrder.flatMap((span) => {
    const failed = span.status.code === 2 ? ' (error)' : ''
    return [`${'  '.repeat(depth)}${span.name}${failed}`, ...printTree(spans, span.spanId, depth + 1)]
  })
}

const route = '/v1/execution/queue-remote/{workflowId}'

test("one trace shows a run below its caller's span: the request, the attempts and their steps", async (context) => {
  const collector = await startCollector(context)
  const { service, key, run } = await startTwoStepService(context, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const response = await run({ traceparent })
  expect(response).toMatchObject({ status: 200, run: { status: 'succeeded' } })
  await fetch(`${service.dashboardUrl}/links/a-secret-token?next=neither-this`)
  expect(await service.stop()).toMatchObject({ code: 0 })

  // If the run takes long, the use of the key is stored meanwhile, in the trace of the request that used it.
  const spans = collector.spans.filter(({ traceId, name }) => traceId === caller.traceId && name !== 'store write')
  expect(printTree(spans, caller.spanId)).toEqual([
    `PUT ${route}`,
    '  send two-steps',
    '    process two-steps (error)',
    '      step first',
    '      step second (error)',
    '    process two-steps',
    '      step first',
    '      step second',
  ])
  const [request, sent, failed, retried] = ['PUT', 'send', 'process', 'process'].map((word, index) =>
    spans.filter(({ name }) => name.startsWith(word)).at(index === 3 ? 1 : 0),
  )
  expect(request).toMatchObject({
    kind: 2,
    attributes: {
      'http.request.method': 'PUT',
      'http.route': route,
      'http.response.status_code': 200,
      'execution_service.operation_id': 'queueRemoteRun',
    },
    resource: { 'service.name': 'execution-service' },
  })
  expect(sent).toMatchObject({ kind: 4, attributes: { 'messaging.message.id': response.run.id } })
  expect([failed, retried].map((span) => span?.attributes['execution_service.attempt'])).toEqual([1, 2])
  for (const attempt of [failed, retried]) {
    expect(attempt).toMatchObject({ kind: 5, links: [{ traceId: caller.traceId, spanId: sent?.spanId }] })
  }
  // The attempt runs in another process than the request.
  const instance = 'service.instance.id'
  expect(failed?.resource[instance]).not.toBe(request?.resource[instance])
  // The secret is masked.
  expect(failed?.status.message).toMatch(/^Failed with (?!correct)/)
  expect(failed?.events).toMatchObject([{ name: 'exception', attributes: { 'exception.type': 'Error' } }])
  // The span of a page has the route, not the path.
  expect(collector.spans.find(({ name }) => name === 'GET /links/:token')).toMatchObject({ kind: 2 })
  expect(collector.bodies.join()).not.toMatch(/a-secret-token|neither-this/)
  expect(collector.bodies.join()).not.toContain(secret)
  expect(collector.bodies.join()).not.toContain(key)

  const line = service.log.find(({ operationId }) => operationId === 'queueRemoteRun')
  expect(line).toMatchObject({ trace_id: caller.traceId, span_id: request?.spanId })
})
