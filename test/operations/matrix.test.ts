/** Every operation of the documents behind every guard, on one service. */
import { afterAll, beforeAll, describe, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { subjectOf, testLimits } from './describe-operation.ts'
import { operations } from './document.ts'
import { guardsOf } from './guards.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false, settings: testLimits })
})
afterAll(() => service.stop())

describe.each(operations)('$id', (operation) => {
  const caller = subjectOf(operation, () => service)
  for (const { status, title, check } of guardsOf(operation))
    test(`${status}: ${title}`, async () => {
      const subject = caller(status)
      await check(subject)
      subject.expectSeen()
    })
})
