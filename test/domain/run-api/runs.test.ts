/** What callers rely on when they queue, read and cancel runs. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import type { QueueRequest } from '../../../src/domain/queue/queue-request.ts'
import { eventsAfter } from '../../../src/domain/queue/runs.sql.ts'
import { claimableOf, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, request, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'
import { waitLimits } from '../../support/timeouts.ts'

const dayMilliseconds = 24 * 60 * 60 * 1000

describe.each(stores)('runs ($name)', (kind) => {
  describe('queueing', () => {
    test('returns the run that any process then reads', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const request = { variables: { a: [1, { b: null }] }, priority: -3, delaySeconds: 5, expiresInSeconds: 60 }
      const run = await queueRun(domain, principal, request)
      const other = await openDomain(test, { kind, location: domain.location })
      expect(await other.runs.get(principal.accountId, run.id)).toEqual(run)
      expect(await other.runs.get(principal.accountId, run.id.toUpperCase())).toEqual(run)
      expect(run).toMatchObject({ status: 'queued', attempts: 0, variables: request.variables, priority: -3 })
      const [event] = await eventsAfter(domain.store.read, run.id, 0, 10)
      const data = { status: 'queued', attempt: 0, reason: null }
      expect(event).toEqual({ sequence: 1, at: run.createdAt, type: 'status', data })
    })

    test('notifies the workers of other processes', async (test) => {
      const domain = await openDomain(test, { kind })
      const other = await openDomain(test, { kind, location: domain.location })
      const { principal } = await newAccount(domain)
      const listener = vi.fn()
      other.store.listen('queue', listener)
      await queueRun(domain, principal)
      await vi.waitFor(() => expect(listener).toHaveBeenCalled(), waitLimits)
    })

    test('rejects unknown workflows and invalid variables, and stores nothing', async (test) => {
      const variables = { type: 'object', required: ['path'], properties: { path: { type: 'string' } } }
      const domain = await openDomain(test, { kind, workflows: [workflow({ variables })] })
      const { accountId, principal } = await newAccount(domain)
      const request: QueueRequest = {
        workflowId: 'anything',
        variables: {},
        idempotencyKey: 'key',
        delaySeconds: 0,
        expiresInSeconds: undefined,
        priority: 0,
      }
      expect(await domain.runs.queue(principal, { ...request, workflowId: 'other' })).toEqual({
        kind: 'noSuchWorkflow',
      })
      const errors = [{ pointer: '/path', detail: 'is required' }]
      expect(await domain.runs.queue(principal, request)).toEqual({ kind: 'variablesInvalid', errors })
      expect(await domain.runs.list(accountId, { limit: 10 })).toEqual({ runs: [], nextCursor: null })
      // The rejected request has not used the key.
      const corrected = await domain.runs.queue(principal, { ...request, variables: { path: 'README.md' } })
      expect(corrected).toMatchObject({ kind: 'queued', replayed: false })
    })
  })

  describe('an idempotency key', () => {
    const idempotencyKey = 'the same key'

    test('is not used by a request that is rejected for an unknown browser context', async (test) => {
      const domain = await openDomain(test, { kind, workflows: [workflow({ usesBrowser: true })] })
      const { principal } = await newAccount(domain)
      const valid = { ...request, idempotencyKey }
      const wrong = { ...valid, browserContextId: crypto.randomUUID(), persistContext: 'never' as const }
      expect(await domain.runs.queue(principal, wrong)).toEqual({ kind: 'noSuchBrowserContext' })
      expect(await domain.runs.queue(principal, valid)).toMatchObject({ kind: 'queued', replayed: false })
    })

    test('creates one run for a hundred concurrent requests to two processes', async (test) => {
      const domain = await openDomain(test, { kind })
      const other = await openDomain(test, { kind, location: domain.location })
      const { accountId, principal } = await newAccount(domain)
      const request = {
        workflowId: 'anything',
        delaySeconds: 0,
        expiresInSeconds: undefined,
        priority: 0,
        idempotencyKey,
      }
      const queue = ({ runs }: Domain) => runs.queue(principal, { ...request, variables: { a: 1 } })
      const results = await Promise.all(Array.from({ length: 100 }, (_, index) => queue(index % 2 ? domain : other)))
      const queued = results.flatMap((result) => (result.kind === 'queued' ? result : []))
      expect(queued).toHaveLength(100)
      expect(new Set(queued.map(({ run }) => run.id)).size).toBe(1)
      expect(queued.filter(({ replayed }) => !replayed)).toHaveLength(1)
      expect((await domain.runs.list(accountId, { limit: 10 }))?.runs).toHaveLength(1)
    })

    test('returns the current state of its run', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const run = await queueRun(domain, principal, { idempotencyKey })
      await domain.runs.cancel(accountId, run.id)
      expect(await queueRun(domain, principal, { idempotencyKey })).toMatchObject({ id: run.id, status: 'cancelled' })
    })

    test.for<Partial<QueueRequest>>([
      { variables: { a: 2 } },
      { priority: 1 },
      { delaySeconds: 1 },
      { expiresInSeconds: 10 },
      { workflowId: 'other' },
    ])('with another request (%o) is a conflict, and nothing is stored', async (change, test) => {
      const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'other' })] })
      const { accountId, principal } = await newAccount(domain)
      const run = await queueRun(domain, principal, { idempotencyKey, variables: { a: 1 } })
      await expect(queueRun(domain, principal, { idempotencyKey, variables: { a: 1 }, ...change })).rejects.toThrow(
        'idempotencyConflict',
      )
      expect((await domain.runs.list(accountId, { limit: 10 }))?.runs.map(({ id }) => id)).toEqual([run.id])
    })

    test('names the same run after the encryption key was rotated', async (test) => {
      const [older, newer] = [randomBytes(32), randomBytes(32)]
      const domain = await openDomain(test, { kind, encryptionKeys: [older] })
      const rotated = await openDomain(test, { kind, location: domain.location, encryptionKeys: [newer, older] })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal, { idempotencyKey })
      expect(await queueRun(rotated, principal, { idempotencyKey })).toEqual(run)
    })

    test('of one account does not affect another', async (test) => {
      const domain = await openDomain(test, { kind })
      const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
      const run = await queueRun(domain, mine.principal, { idempotencyKey, variables: { a: 1 } })
      const other = await queueRun(domain, theirs.principal, { idempotencyKey, variables: { a: 2 } })
      expect(other.id).not.toBe(run.id)
    })

    test('expires after 24 hours', async (test) => {
      let time = Date.now()
      const domain = await openDomain(test, { kind, now: () => time })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal, { idempotencyKey })
      time += dayMilliseconds - 1
      await domain.maintenance.once()
      expect((await queueRun(domain, principal, { idempotencyKey })).id).toBe(run.id)
      time += 1
      const later = await queueRun(domain, principal, { idempotencyKey, variables: { a: 2 } })
      expect(later.id).not.toBe(run.id)
      expect((await queueRun(domain, principal, { idempotencyKey, variables: { a: 2 } })).id).toBe(later.id)
      time += dayMilliseconds
      await domain.maintenance.once()
      expect(await domain.store.read.all('SELECT key FROM idempotency_keys', [])).toEqual([])
    })
  })

  describe('cancelling', () => {
    test('ends a queued run at once', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const run = await queueRun(domain, principal, { delaySeconds: 60 })
      const cancelled = await domain.runs.cancel(accountId, run.id)
      const ended = { status: 'cancelled', reason: 'cancelRequested', cancelRequested: true, waitingFor: null }
      expect(cancelled).toMatchObject(ended)
      expect(cancelled?.finishedAt).toEqual(expect.any(Number))
      expect(await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)).toEqual([])
    })

    test('asks the worker of a running run to stop, and overrides the outcome of the attempt', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
      if (!claim) throw new Error('There was no run to claim.')
      expect(await domain.queue.cancelRequested('worker')).toEqual([])
      const cancelled = await domain.runs.cancel(accountId, run.id)
      expect(cancelled).toMatchObject({ status: 'running', cancelRequested: true, finishedAt: null })
      const lease = { runId: run.id, attempt: 1, workerId: 'worker' }
      expect(await domain.queue.cancelRequested('worker')).toEqual([lease])
      expect(await domain.queue.cancelRequested('another')).toEqual([])
      await domain.queue.complete(claim, { kind: 'succeeded', output: 'too late' }, noRetry)
      const ended = { status: 'cancelled', reason: 'cancelRequested', output: null }
      expect(await domain.runs.get(accountId, run.id)).toMatchObject(ended)
    })

    test('changes nothing the second time or after the run has finished', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, principal } = await newAccount(domain)
      const [queued, finished] = [await queueRun(domain, principal), await queueRun(domain, principal, { priority: 1 })]
      const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
      if (claim) await domain.queue.complete(claim, { kind: 'succeeded', output: 7 }, noRetry)
      const first = await domain.runs.cancel(accountId, queued.id)
      expect(await domain.runs.cancel(accountId, queued.id)).toEqual(first)
      const done = await domain.runs.get(accountId, finished.id)
      expect(await domain.runs.cancel(accountId, finished.id)).toEqual(done)
      expect(done).toMatchObject({ status: 'succeeded', output: 7, cancelRequested: false })
      expect(await eventsAfter(domain.store.read, queued.id, 0, 10)).toHaveLength(2)
      expect(await eventsAfter(domain.store.read, finished.id, 0, 10)).toHaveLength(3)
    })
  })

  test('of one account cannot be read, listed or cancelled by another', async (test) => {
    const domain = await openDomain(test, { kind })
    const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
    const run = await queueRun(domain, mine.principal)
    const other = await queueRun(domain, theirs.principal)
    expect(await domain.runs.get(theirs.accountId, run.id)).toBeUndefined()
    expect(await domain.runs.cancel(theirs.accountId, run.id)).toBeUndefined()
    expect((await domain.runs.list(theirs.accountId, { limit: 10 }))?.runs.map(({ id }) => id)).toEqual([other.id])
    expect(await domain.runs.get(mine.accountId, run.id)).toEqual(run)
  })
})
