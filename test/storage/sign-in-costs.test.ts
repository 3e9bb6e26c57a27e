/**
 * A run of a browser context without a sign-in executes no statement for sign-ins, and one that is signed in at most one.
 * Two statements that read browser contexts join the sign-in by its primary key.
 */
import { StatementSync } from 'node:sqlite'
import { expect, type TestContext, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { browserWorkflow, createState, openWithContext } from '../support/browser-contexts.ts'
import { claimAll, noRetry } from '../support/claims.ts'
import { workflow } from '../support/domain.ts'

/** Records the text of each statement that is executed. */
function recordStatements(test: TestContext): string[] {
  const statements: string[] = []
  for (const name of ['all', 'get', 'run'] as const) {
    const original = StatementSync.prototype[name] as (...values: unknown[]) => unknown
    StatementSync.prototype[name] = function (this: StatementSync, ...values: unknown[]) {
      statements.push(this.sourceSQL.replace(/\s+/g, ' '))
      return original.apply(this, values)
    } as never
    test.onTestFinished(() => {
      StatementSync.prototype[name] = original as never
    })
  }
  return statements
}

test('a run of a browser context without a sign-in executes no statement for sign-ins', async (test) => {
  const signInWorkflow = workflow({ id: 'sign-in', usesBrowser: true, signsIn: true })
  const opened = await openWithContext(test, { workflows: [browserWorkflow, signInWorkflow] })
  const { domain, accountId, contextId, createContext, queue, run } = opened
  const other = await createContext('Other')
  expect(await domain.signIns.set(accountId, other, { workflowId: 'sign-in', variables: {} }, operator)).toMatchObject({
    kind: 'set',
  })
  const statements = recordStatements(test)
  const execute = async (id: string) => {
    statements.splice(0)
    const queued = await queue({ id })
    const [claim, ...others] = await claimAll(domain.queue, domain)
    if (!claim) return expect.fail('no claim')
    expect(others).toEqual([])
    await domain.runContexts.read(claim)
    const state = { captured: { json: createState(queued.id) }, restored: undefined, redact: (text: string) => text }
    const { outcome, reports, within } = await domain.runContexts.save(
      claim,
      { kind: 'succeeded', output: null },
      state,
    )
    expect(await domain.queue.complete(claim, outcome, noRetry, reports, within)).toBe(true)
    expect(await run(queued)).toMatchObject({ status: 'succeeded' })
    return {
      count: statements.length,
      own: statements.filter((sql) => /(from|into|update) "?context_sign_in/i.test(sql)),
    }
  }
  // Before, statements are prepared and limits are read.
  await execute(contextId)
  const without = await execute(contextId)
  expect(without.own).toEqual([])
  expect(without.count).toBeGreaterThan(5)
  const signedIn = await execute(other)
  expect(signedIn.own.length).toBeLessThanOrEqual(1)
  expect(signedIn.count - without.count).toBeLessThanOrEqual(1)
})
