/** Actions of callers, workers and maintenance on a store, run through the service's own code. */

import { randomUUID } from 'node:crypto'
import { ApiKeys } from '../src/domain/api-keys/api-keys.ts'
import { buildSnapshot } from '../src/domain/deployments/build-snapshot.ts'
import { RunQueue } from '../src/domain/queue/run-queue.ts'
import { RunArtifacts } from '../src/domain/run-api/artifacts.ts'
import { findListErrors, type ListRequest } from '../src/domain/run-api/list-request.ts'
import { RunFeed } from '../src/domain/run-api/run-feed.ts'
import { Runs, readHistory } from '../src/domain/run-api/runs.ts'
import { queueDepth } from '../src/domain/statistics/queue-depth.ts'
import { RunStatistics } from '../src/domain/statistics/run-statistics.ts'
import { Workflows } from '../src/domain/workflows/workflows.ts'
import { Maintenance } from '../src/maintenance/maintenance.ts'
import { knownScopes } from '../src/openapi/served-documents.ts'
import { Cursors } from '../src/storage/cursors.ts'
import { Encryption, FixedKeys } from '../src/storage/encryption.ts'
import type { Store } from '../src/storage/store.ts'
import { claimableOf } from '../test/support/claims.ts'

export type Actions = Record<string, () => Promise<unknown>>

/** Long enough that nothing expires. */
const retention = { runs: 3650, artifacts: 3650, auditLog: 3650 }
const dayMilliseconds = 24 * 60 * 60 * 1000
const retry = { maxAttempts: 1, backoffSeconds: 0, backoffFactor: 1 }
const claimCount = 4

/** Creates the actions for the account of the API key. */
export async function createActions(store: Store, apiKey: string): Promise<Actions> {
  const principal = (await new ApiKeys(store, knownScopes()).authenticate(apiKey, undefined))?.principal
  if (principal === undefined) throw new Error('The API key is not in the store.')
  const { accountId, apiKeyId } = principal
  const encryption = new Encryption(new FixedKeys([Buffer.alloc(32, 1)]))
  const snapshot = await buildSnapshot(new URL('./workflows', import.meta.url).pathname)
  const workflows = new Workflows(snapshot.workflows)
  const artifacts = new RunArtifacts(store, 30)
  const runs = new Runs({
    store,
    workflows: { current: () => workflows },
    encryption,
    cursors: new Cursors(encryption),
    artifacts,
  })
  return {
    ...(await callerActions(store, runs, { accountId, apiKeyId, apiKey })),
    ...workerActions(store, runs, workflows, accountId),
    'run maintenance when nothing is due': () => new Maintenance({ store, retention, log: { warn: fail } }).once(),
    'count runs for /metrics': () =>
      queueDepth(store.read, { ofWorkflow: () => Number.POSITIVE_INFINITY, ofAccount: Number.POSITIVE_INFINITY }),
  }
}

function fail(error: unknown): never {
  throw error
}

const request = { workflowId: 'first-line', variables: { note: 'x' }, idempotencyKey: undefined, priority: 0 }
const plain = { ...request, delaySeconds: 0, expiresInSeconds: undefined }

interface Caller {
  accountId: string
  apiKeyId: string
  apiKey: string
}

async function callerActions(store: Store, runs: Runs, { accountId, apiKeyId, apiKey }: Caller) {
  const apiKeys = new ApiKeys(store, knownScopes())
  const by = { accountId, apiKeyId: null }
  const list = (filter: Partial<ListRequest>) => () => runs.list(accountId, { limit: 50, ...filter })
  const longAgo = Date.now() - 20 * dayMilliseconds
  const day = { createdAfter: longAgo, createdBefore: longAgo + dayMilliseconds }
  const first = (await runs.list(accountId, { limit: 1, ...day }))?.runs[0]?.id ?? randomUUID()
  return {
    'look up an API key': () => apiKeys.authenticate(apiKey, undefined),
    'queue a run': () => runs.queue(by, plain),
    'queue a run with an idempotency key': () => runs.queue(by, { ...plain, idempotencyKey: randomUUID() }),
    'queue 64 runs at once': () => Promise.all(Array.from({ length: 64 }, () => runs.queue(by, plain))),
    'get a run': () => runs.get(accountId, first),
    'read the events of a run': () => readHistory(store.read, first, 100),
    'list runs': list({}),
    'list runs of a past day': list(day),
    'list runs of a status': list({ status: 'failed' }),
    'list runs of three statuses': list({ status: ['failed', 'timedOut', 'cancelled'] }),
    'list runs of a workflow': list({ workflowId: 'export-orders' }),
    'list runs of a workflow and a status': list({ workflowId: 'export-orders', status: 'failed' }),
    'list runs of an unused workflow and a status': list({ workflowId: 'none', status: 'succeeded' }),
    ...findActions(list, apiKeyId),
    'read the statistics of an account': async () => {
      const statistics = new RunStatistics(store)
      await Promise.all([statistics.current(accountId), statistics.history(accountId, '7d')])
    },
  }
}

/** Each filter that has an index of its own, for values that many runs have, that few have, and that none has. */
function findActions(list: (filter: Partial<ListRequest>) => () => Promise<unknown>, apiKeyId: string): Actions {
  const workflowId = 'export-orders'
  const filters: Record<string, Partial<ListRequest>> = {
    'a tag': { tag: ['nightly'] },
    'a rare tag': { tag: ['customer:41'] },
    'an unused tag': { tag: ['none'] },
    'ten tags': { tag: ['nightly', ...Array.from({ length: 9 }, (_, index) => `customer:${4 * index + 1}`)] },
    'a reason': { reason: 'timeLimit' },
    'an unused reason': { reason: 'contextNotSaved' },
    'an error word': { errorWord: 'shop' },
    'an unused error word': { errorWord: 'none' },
    'an API key': { apiKeyId },
    'an unused API key': { apiKeyId: randomUUID() },
    'a browser context': { browserContextId: randomUUID() },
  }
  const variants: Record<string, Partial<ListRequest>> = {
    '': {},
    ', oldest first': { order: 'oldestFirst' },
    ' and a status': { status: 'timedOut' },
    ' and a workflow': { workflowId },
    ' and a workflow and a status': { workflowId, status: 'failed', order: 'oldestFirst' },
  }
  return Object.fromEntries(
    Object.entries(filters).flatMap(([name, filter]) =>
      Object.entries(variants)
        .map(([variant, more]) => [`list runs of ${name}${variant}`, { ...filter, ...more }] as const)
        .filter(([, request]) => findListErrors({ limit: 50, ...request }).length === 0)
        .map(([title, request]) => [title, list(request)]),
    ),
  )
}

function workerActions(store: Store, runs: Runs, workflows: Workflows, accountId: string): Actions {
  const queue = new RunQueue(store)
  const feed = new RunFeed(store)
  const workerId = randomUUID()
  const report = { at: Date.now(), type: 'log' as const, data: { level: 'info', message: 'A line of the workflow.' } }
  return {
    'claim, report and complete 4 runs': async () => {
      const claims = await queue.claim(workerId, claimableOf(workflows), claimCount, 15)
      if (claims.length < claimCount) throw new Error('Too few runs were claimed.')
      await Promise.all(claims.map((claim) => queue.report(claim, [report])))
      await queue.renew(workerId, claims, 15)
      await queue.cancelRequested(workerId)
      await Promise.all(claims.map((claim) => queue.complete(claim, { kind: 'succeeded', output: 1 }, retry)))
    },
    'follow a run until it is cancelled': async () => {
      const queued = await runs.queue({ accountId, apiKeyId: null }, plain)
      if (queued.kind !== 'queued') throw new Error(`The run was not queued: ${queued.kind}.`)
      const finished = feed.waitUntilFinished(queued.run.id, 5, new AbortController().signal)
      await runs.cancel(accountId, queued.run.id)
      await finished
    },
  }
}
