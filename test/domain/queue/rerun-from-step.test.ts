/** Runs that start from a step of a finished one: which results they get, which are refused, and how all are erased. */
import { describe, expect, test } from 'vitest'
import type { Principal } from '../../../src/domain/api-keys/api-key.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { describeRefusedStart } from '../../../src/domain/queue/queue-problems.ts'
import type { Run } from '../../../src/domain/runs/run.ts'
import { stepAad } from '../../../src/domain/runs/run.ts'
import { claimOne, failedAttempt, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, request, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const variables = {
  type: 'object',
  properties: { url: { type: 'string' }, token: { type: 'string', writeOnly: true } },
}

async function openWithAccount(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind, workflows: [workflow({ variables })] })
  return { domain, ...(await newAccount(domain)) }
}

/** Runs the next queued run: finishes these steps, then fails in a step. */
async function failAfter(domain: Domain, steps: Record<string, unknown>) {
  const { queue, encryption, runs } = domain
  const claim = await claimOne(domain)
  const { runId, accountId } = claim
  let position = claim.steps.length
  for (const [name, value] of Object.entries(steps)) {
    position += 1
    const encrypt = () => encryption.encrypt(JSON.stringify(value), stepAad(runId, name))
    const finished = { type: 'step', at: 0, data: { name, state: 'finished' } } as never
    expect(await queue.finishStep(claim, { name, position }, encrypt, [finished])).toBe(true)
  }
  const started = { type: 'step', at: 0, data: { name: 'sign', state: 'started' } } as never
  await queue.report(claim, [started])
  const error = { ...failedAttempt.error, step: 'sign' }
  await queue.complete(claim, { ...failedAttempt, error } as never, noRetry)
  return (await runs.get(accountId, runId)) as Run
}

/** Queues a run that repeats the finished one from a step; or returns why not. */
async function rerun({ runs }: Domain, by: Principal, finished: Run, fromStep: string, changes: object = {}) {
  const { id, variables } = finished
  const again = { ...request, variables, secretsFrom: id, rerunOf: id, ...changes }
  const start = await runs.readStart(finished, fromStep, by, again.variables)
  if ('refused' in start) return start
  const queued = await runs.queue(by, { ...again, start })
  if (queued.kind !== 'queued') throw new Error(queued.kind)
  return queued.run
}

/** The results that the worker of the next run gets. */
async function claimResults(domain: Domain) {
  const claim = await claimOne(domain)
  const decrypt = (value: Uint8Array, name: string) => domain.encryption.decrypt(value, stepAad(claim.runId, name))
  return { claim, results: claim.steps.map(({ name, value }) => [name, JSON.parse(decrypt(value, name))]) }
}

const storedSteps = ({ store }: Domain) =>
  store.read.all('SELECT run_id, name FROM run_steps ORDER BY run_id, position', [])

describe.each(stores)('a run that starts from a step ($name)', (kind) => {
  test('gets the results before it in the order in which they finished, also as a repeat of a repeat', async (test) => {
    const { domain, principal } = await openWithAccount(test, kind)
    await queueRun(domain, principal)
    const first = await failAfter(domain, { write: 'w', fetch: [1], parse: null })
    await rerun(domain, principal, first, 'parse')
    const second = await failAfter(domain, { parse: 'again' })
    expect(second.rerunOf).toBe(first.id)
    await rerun(domain, principal, second, 'sign')
    const { claim, results } = await claimResults(domain)
    expect(results).toEqual([
      ['write', 'w'],
      ['fetch', [1]],
      ['parse', 'again'],
    ])
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const left = await storedSteps(domain)
    expect([...new Set(left.map((row) => (row as { run_id: string }).run_id))]).toEqual([first.id, second.id])
  })

  test('keeps what it reuses when the finished run is deleted, which erases the steps of that one', async (test) => {
    const { domain, principal, accountId } = await openWithAccount(test, kind)
    await queueRun(domain, principal)
    const finished = await failAfter(domain, {})
    const names = Array.from({ length: 600 }, (_, index) => `page ${index}`)
    const toRow = (name: string, index: number) => {
      const value = domain.encryption.encrypt(`"${name}"`, stepAad(finished.id, name))
      return { run_id: finished.id, name, value, position: index + 1 }
    }
    await domain.store.write(({ query }) => query.insertInto('run_steps').values(names.map(toRow)).execute())
    const again = (await rerun(domain, principal, finished, 'sign')) as Run
    expect(await domain.runs.delete(accountId, finished.id, operator)).toBe('deleted')
    const { claim, results } = await claimResults(domain)
    expect(results).toEqual(names.map((name) => [name, name]))
    expect(await storedSteps(domain)).toHaveLength(600)
    await domain.queue.complete(claim, failedAttempt, noRetry)
    await domain.runs.delete(accountId, again.id, operator)
    expect(await storedSteps(domain)).toEqual([])
  })

  test('can start from the step that a cancellation interrupted', async (test) => {
    const { domain, principal } = await openWithAccount(test, kind)
    await queueRun(domain, principal)
    const claim = await claimOne(domain)
    const { runId, accountId } = claim
    const report = (name: string, state: string) => ({ type: 'step', at: 0, data: { name, state } }) as never
    const encrypt = () => domain.encryption.encrypt('1', stepAad(runId, 'write'))
    await domain.queue.finishStep(claim, { name: 'write', position: 1 }, encrypt, [report('write', 'finished')])
    await domain.queue.report(claim, [report('fetch', 'started')])
    await domain.runs.cancel(accountId, runId)
    await domain.queue.complete(claim, { kind: 'cancelled' }, noRetry)
    await rerun(domain, principal, (await domain.runs.get(accountId, runId)) as Run, 'fetch')
    expect((await claimResults(domain)).results).toEqual([['write', 1]])
  })

  test('is refused for a step that the run did not reach, and after a success', async (test) => {
    const { domain, principal } = await openWithAccount(test, kind)
    await queueRun(domain, principal, { variables: { token: 'very secret' } })
    const finished = await failAfter(domain, { write: 1, 'fetch very secret': 2 })
    const refused = await rerun(domain, principal, finished, 'no-such-step')
    expect(refused).toEqual({ refused: 'noSuchStep', steps: ['write', 'fetch ********', 'sign'] })
    expect(describeRefusedStart(refused as never)).toMatch(/the first are write, fetch \*{8}, sign$/)
    await queueRun(domain, principal)
    const claim = await claimOne(domain)
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const succeeded = (await domain.runs.get(principal.accountId, claim.runId)) as Run
    expect(await rerun(domain, principal, succeeded, 'write')).toEqual({ refused: 'succeeded' })
  })

  test('is refused to other callers with other variables, and if results contain a replaced secret', async (test) => {
    const { domain, principal } = await openWithAccount(test, kind)
    const other = { ...principal, apiKeyId: crypto.randomUUID() }
    const secret = { token: 'very secret', url: 'a' }
    await queueRun(domain, principal, { variables: secret })
    const finished = await failAfter(domain, { login: { header: 'Bearer very secret' }, fetch: 1 })
    const from = (by: Principal, fromStep: string, variables: object = finished.variables) =>
      domain.runs.readStart(finished, fromStep, by, variables as never)
    expect(await from(other, 'fetch')).toHaveProperty('results.length', 1)
    expect(await from(other, 'fetch', { ...finished.variables, url: 'b' })).toEqual({ refused: 'otherCaller' })
    expect(await from(principal, 'fetch', { ...finished.variables, url: 'b' })).toHaveProperty('results')
    expect(await from(principal, 'fetch', { ...secret, token: 'another' })).toEqual({ refused: 'otherSecrets' })
    expect(await from(principal, 'fetch', { url: 'a' })).toEqual({ refused: 'otherSecrets' })
    expect(await from(principal, 'fetch', secret)).toHaveProperty('results')
    expect(await from(principal, 'login', { ...secret, token: 'another' })).toHaveProperty('results', [])
  })

  test('counts the results towards the storage quota, and stores them once for an idempotency key', async (test) => {
    const { domain, principal, accountId } = await openWithAccount(test, kind)
    await queueRun(domain, principal)
    const finished = await failAfter(domain, { fetch: 'x'.repeat(100_000) })
    const before = domain.usage.bytesOf(accountId)
    const idempotencyKey = 'again'
    const first = (await rerun(domain, principal, finished, 'sign', { idempotencyKey })) as Run
    expect(domain.usage.bytesOf(accountId) - before).toBeGreaterThan(100_000)
    const second = (await rerun(domain, principal, finished, 'sign', { idempotencyKey })) as Run
    expect(second.id).toBe(first.id)
    expect(await storedSteps(domain)).toHaveLength(2)
    const start = { fromStep: 'fetch', results: [] }
    const again = { ...request, secretsFrom: finished.id, rerunOf: finished.id, idempotencyKey, start }
    expect(await domain.runs.queue(principal, again)).toEqual({ kind: 'idempotencyConflict' })
  })
})
