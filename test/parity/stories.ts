/** Requests whose response depends on an earlier one, or that concern only the mock, and those of pages. */
import { mockKeys } from '../../src/tools/mock/mock-keys.ts'
import { type OperationId, operationOf } from '../operations/document.ts'
import { credential } from '../operations/requests.ts'
import type { ParityCase } from './cases.ts'
import { type Base, toRawRequest } from './servers.ts'

type Vary = (base: Base) => Base

export function stories(): ParityCase[] {
  const story = (id: OperationId, what: string, vary: Vary, before?: Vary): ParityCase => {
    const operation = operationOf(id)
    return {
      title: `${id}: ${what}`,
      surface: operation.surface,
      operation,
      request: (base) => toRawRequest(vary(base)),
      ...(before && { before: (base) => toRawRequest(before(base)) }),
    }
  }
  const withHeader =
    (...headers: string[]): Vary =>
    (base) => ({ ...base, headers: [...base.headers, ...headers] })
  const once = withHeader('Idempotency-Key', 'once')
  const different: Vary = (base) => once({ ...base, query: ['delaySeconds=7200'] })
  const valid: Vary = (base) => base
  const errorKeys = mockKeys.filter(({ status }) => status >= 429)
  return [
    story('queueRemoteRun', 'the same request with the same Idempotency-Key', once, once),
    story('queueRemoteRun', 'another request with the same Idempotency-Key', different, once),
    story('createBrowserContext', 'a name in use', valid, valid),
    story('streamRunEvents', 'Last-Event-ID of the first event', withHeader('Last-Event-ID', '1')),
    story('streamRunEvents', 'Last-Event-ID of the last event', withHeader('Last-Event-ID', '99')),
    story('getRun', 'Prefer: code=404', withHeader('Prefer', 'code=404')),
    ...['code=418', 'example=none-such', 'dynamic=maybe'].map((preference) => {
      return story('getRun', `Prefer: ${preference}, which is unknown`, withHeader('Prefer', preference))
    }),
    story('listRuns', 'two filters that have no index together', (base) => ({
      ...base,
      query: ['tag=a', 'reason=timeLimit'],
    })),
    story('bulkCancelRuns', 'two filters that have no index together', (base) => ({
      ...base,
      body: JSON.stringify({ tag: ['a'], reason: 'timeLimit' }),
    })),
    story('listRuns', 'Prefer: dynamic=true', withHeader('Prefer', 'dynamic=true')),
    story('queueRemoteRun', 'Prefer: wait=1, for a run that is delayed', withHeader('Prefer', 'wait=1')),
    story('queueRemoteRun', 'the mask of a secret as its value', (base) => ({
      ...base,
      path: { workflowId: 'greet' },
      body: JSON.stringify({ variableData: { name: 'Ada', token: '********' } }),
    })),
    story('queueRemoteRun', 'Prefer: wait=0', withHeader('Prefer', 'wait=0')),
    story('queueRemoteRun', 'Prefer: respond-async, wait=x', withHeader('Prefer', 'respond-async, wait=x')),
    ...errorKeys.map(({ status, value }) =>
      story('listRuns', `the key of the mock for ${status}`, (base) => ({
        ...base,
        credential: () => Object.entries(credential(base, value)).flat(),
      })),
    ),
    // Only the redirect: both serve the same site, which takes a second to build.
    {
      title: 'the docs',
      surface: 'execution',
      operation: undefined,
      request: () => ({ method: 'GET', path: '/docs' }),
    },
  ]
}

/** Requests of pages of another origin. */
export function pageRequests(): ParityCase[] {
  const origin = ['Origin', 'http://pages.example']
  const operation = operationOf('listRuns')
  const { surface, path } = operation
  return [
    {
      ...{ title: 'listRuns: Origin', surface, operation },
      request: (base) => toRawRequest({ ...base, headers: [...base.headers, ...origin] }),
    },
    {
      ...{ title: 'a preflight', surface, operation: undefined },
      request: () => ({
        ...{ method: 'OPTIONS', path },
        headers: [...origin, 'Access-Control-Request-Method', 'GET'],
      }),
    },
  ]
}
