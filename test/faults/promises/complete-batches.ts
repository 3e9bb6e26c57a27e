/**
 * A worker without executors, by `node complete-batches.ts STORE LOCATION LEDGER [LIMITS LEASE_SECONDS]`: claims and
 * completes runs in batches until it is killed. Appends a line to the ledger for each completion that was confirmed.
 * LIMITS is the workflow's `concurrency` and `throttle`, as JSON.
 */
import { randomUUID } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import { RunQueue } from '../../../src/domain/queue/run-queue.ts'
import type { Store } from '../../../src/storage/store.ts'
import { claimableOf, leaseSeconds, noRetry } from '../../support/claims.ts'

const slots = 8
const executionMillisecondsMax = 20

const [name = '', location = '', ledgerPath = '', limits = '{}', lease = leaseSeconds] = process.argv.slice(2)

/** Loads one store only, since a thousand processes are started. */
async function openStore(): Promise<Store> {
  if (name === 'sqlite') return (await import('../../../src/storage/sqlite/sqlite-store.ts')).openSqliteStore(location)
  return (await import('../../../src/storage/postgres/postgres-store.ts')).openPostgresStore(location)
}

const workflows = claimableOf([{ id: 'anything', usesBrowser: false, ...JSON.parse(limits) }])
const store = await openStore()
const queue = new RunQueue(store)
const ledger = openSync(ledgerPath, 'a')
const workerId = randomUUID()
let executing = 0

async function execute(claim: Claim): Promise<void> {
  executing += 1
  await delay(Math.random() * executionMillisecondsMax)
  const { runId, attempt } = claim
  const report = { at: Date.now(), type: 'log' as const, data: { attempt, level: 'info', message: 'Executed.' } }
  const outcome = { kind: 'succeeded' as const, output: { workerId, attempt } }
  executing -= 1
  if (await queue.complete(claim, outcome, noRetry, [report])) writeSync(ledger, `${runId} ${workerId} ${attempt}\n`)
}

process.send?.('ready')
for (;;) {
  const claims = await queue.claim(workerId, workflows, () => slots - executing, Number(lease))
  for (const claim of claims) void execute(claim)
  await delay(1)
}
