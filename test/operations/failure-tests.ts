/** The blocks of 500 and 503, the same for every operation: failures of the service. */
import { expect, test } from 'vitest'
import type { Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { addressOf, credential, sendRequest } from './requests.ts'

/** A table that the operation needs; operations on workflows read only that of API keys. */
const tables: Record<string, string> = {
  Runs: 'runs',
  Workflows: 'api_keys',
  'Browser contexts': 'browser_contexts',
  'Storage state': 'browser_contexts',
  'Sign-in': 'context_sign_ins',
  Deployments: 'deployment_activations',
  Schedules: 'schedules',
  Waits: 'run_waits',
  Webhooks: 'webhook_endpoints',
  Notifications: 'notification_rules',
  Workers: 'workers',
  Files: 'files',
  'Secrets and settings': 'account_values',
  Usage: 'run_usage',
}

const tableOf = ({ operation: { id, tag } }: Subject) => {
  if (/bulk/i.test(id)) return 'bulk_actions'
  return id === 'getDeploymentBundle' ? 'deployments' : (tables[tag] as string)
}

/** 500: the response reveals nothing internal; the log has the error with the same request id. */
export function testInternalError(subject: Subject): void {
  const table = tableOf(subject)

  test('reveals only the request id of an error, which the log has', async () => {
    const { request } = await subject.caller()
    const { change, log } = subject.service
    const rename = (from: string, to: string) => change(`ALTER TABLE ${from} RENAME TO ${to}`)
    await rename(table, 'renamed')
    let response: Awaited<ReturnType<Subject['send']>>
    try {
      response = await subject.send(request)
    } finally {
      await rename('renamed', table)
    }
    expectProblem(subject.operation, response, {
      kind: 'internal-error',
      title: 'Internal error',
      status: 500,
      detail: 'The service failed. Report the request id.',
    })
    const lines = log.filter(({ requestId, level }) => requestId === response.body.requestId && Number(level) >= 50)
    expect(lines).toMatchObject([
      {
        operationId: subject.operation.id,
        err: {
          message: expect.stringMatching(new RegExp(`^(no such table: ${table}|relation "${table}" does not exist)$`)),
        },
      },
    ])
    const again = await sendRequest(addressOf(subject.service, subject.operation), request)
    expect(again.status).toBeLessThan(300)
  })
}

/** 503: the store is unavailable; the service recovers by itself. */
export function testUnavailable(subject: Subject): void {
  test('responds with 503 while the store is unreadable, and serves the request afterwards', async () => {
    const { request } = await subject.caller()
    const response = await subject.service.whileUnreadable(() => subject.send(request))
    expectProblem(subject.operation, response, {
      kind: 'unavailable',
      title: 'Unavailable',
      status: 503,
      detail: 'The store is unavailable. Try again.',
    })
    expect(response.headers['retry-after']).toBe('1')
    const again = await sendRequest(addressOf(subject.service, subject.operation), request)
    expect(again.status).toBeLessThan(300)
  })

  test('does not refuse a key that it cannot look up', async () => {
    const { request } = await subject.caller()
    const headers = { ...request.headers, ...credential(subject.operation, crypto.randomUUID()) }
    await subject.service.whileUnreadable(() => subject.send({ ...request, headers }))
  })
}
