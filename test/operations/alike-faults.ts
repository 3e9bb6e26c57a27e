/** The blocks of 500 and 503, which are alike for every operation: what the service itself lacks. */
import { expect, test } from 'vitest'
import { expectProblem } from './document.ts'
import type { Subject } from './operation.ts'
import { addressOf, credential, sendRequest } from './requests.ts'

/** The table that the operation cannot do without; those on workflows read only the key's. */
const tables: Record<string, string> = {
  Runs: 'runs',
  Workflows: 'api_keys',
  'Browser contexts': 'browser_contexts',
  'Storage state': 'browser_contexts',
}

/** 500: the answer says nothing of the inside, the log says all of it, under the same request id. */
export function saysNothingOfFaults(subject: Subject): void {
  const table = tables[subject.operation.tag] as string

  test('says nothing of a fault but the id under which the log has it', async () => {
    const { request } = await subject.caller()
    const { change, log } = subject.service
    const rename = (from: string, to: string) => change(`ALTER TABLE ${from} RENAME TO ${to}`)
    await rename(table, 'mislaid')
    let answer: Awaited<ReturnType<Subject['answered']>>
    try {
      answer = await subject.answered(request)
    } finally {
      await rename('mislaid', table)
    }
    expectProblem(subject.operation, answer, {
      kind: 'internal-error',
      title: 'Internal error',
      status: 500,
      detail: 'The service failed. Report the request id.',
    })
    const lines = log.filter(({ requestId, level }) => requestId === answer.body.requestId && Number(level) >= 50)
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

/** 503: the store cannot answer now; afterwards the service goes on by itself. */
export function asksToTryAgain(subject: Subject): void {
  test('asks to try again while the store cannot be read, and serves the same request after that', async () => {
    const { request } = await subject.caller()
    const answer = await subject.service.whileUnreadable(() => subject.answered(request))
    expectProblem(subject.operation, answer, {
      kind: 'unavailable',
      title: 'Unavailable',
      status: 503,
      detail: 'The store is unavailable. Try again.',
    })
    expect(answer.headers['retry-after']).toBe('1')
    const again = await sendRequest(addressOf(subject.service, subject.operation), request)
    expect(again.status).toBeLessThan(300)
  })

  test('does not call a key bad that the store cannot be asked for', async () => {
    const { request } = await subject.caller()
    const headers = { ...request.headers, ...credential(subject.operation, crypto.randomUUID()) }
    await subject.service.whileUnreadable(() => subject.answered({ ...request, headers }))
  })
}
