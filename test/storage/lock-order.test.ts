/** All that waits for runs in PostgreSQL waits for them in the order of their ids, so that no two transactions wait for each other. */
import { glob, readFile } from 'node:fs/promises'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import { cancelRuns } from '../../src/domain/queue/cancellation.ts'
import { deleteRuns, hideOrStopRuns } from '../../src/storage/runs/run-maintenance.ts'
import { resumeForSession } from '../../src/storage/runs/sign-in-statements.ts'
import { wakeRuns } from '../../src/storage/runs/wait-statements.ts'
import { claimAll, claimOne, createManualClock, failedAttempt, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { waitLimits } from '../support/timeouts.ts'

async function open(test: Test) {
  const clock = createManualClock()
  const domain = await openDomain(test, {
    kind: postgres,
    now: clock.now,
    workflows: [workflow({ usesBrowser: true })],
  })
  const { principal } = await newAccount(domain)
  /** Runs that the attempt calls, claimed too. */
  const call = async (caller: Claim, names: readonly string[]) => {
    const reached = names.map((name) => {
      return { name, kind: 'run', workflowId: 'anything', variables: {}, options: {}, isDetached: false } as const
    })
    await domain.queue.wait(caller, { reached, names, suspend: undefined }, [])
    return claimAll(domain.queue, domain)
  }
  const claimNew = async () => {
    await queueRun(domain, principal)
    return claimOne(domain)
  }
  const set = (ids: readonly string[], columns: object) =>
    domain.store.write(({ query }) => query.updateTable('runs').set(columns).where('id', 'in', ids).execute())
  const queueAll = async (count: number) => {
    const ids: string[] = []
    while (ids.length < count) ids.push((await queueRun(domain, principal)).id)
    return ids
  }
  return { clock, domain, principal, call, claimNew, queueAll, set }
}

type Opened = Awaited<ReturnType<typeof open>>
/** Sets runs up. Returns those that the operation waits for, in any order. */
type Prepare = (opened: Opened) => Promise<{ ids: readonly string[]; act: () => Promise<unknown> }>

const idsOf = (claims: readonly Claim[]) => claims.map(({ runId }) => runId)
const succeeded = { kind: 'succeeded', output: null } as const

const operations: Record<string, Prepare> = {
  'renewing leases': async ({ domain, call, claimNew }) => {
    const caller = await claimNew()
    const all = [...(await call(caller, ['a', 'b'])), caller]
    return { ids: idsOf(all), act: () => domain.queue.renew(caller.workerId, all, 60) }
  },
  'the success of called runs': async ({ domain, call, claimNew }) => {
    const callers = [await claimNew(), await claimNew()] as const
    const called = [...(await call(callers[1], ['a'])), ...(await call(callers[0], ['a']))]
    const act = () => Promise.all(called.map((each) => domain.queue.complete(each, succeeded, noRetry)))
    return { ids: idsOf([...callers, ...called]), act }
  },
  'the success of runs': async ({ domain, queueAll }) => {
    const ids = await queueAll(3)
    const claims = (await claimAll(domain.queue, domain)).toReversed()
    return { ids, act: () => Promise.all(claims.map((each) => domain.queue.complete(each, succeeded, noRetry))) }
  },
  'the failure of a called run': async ({ domain, call, claimNew }) => {
    const caller = await claimNew()
    const [called] = (await call(caller, ['a'])) as [Claim]
    return { ids: idsOf([caller, called]), act: () => domain.queue.complete(called, failedAttempt, noRetry) }
  },
  'the end of a cancelled run that its worker hands back': async ({ domain, principal, call, claimNew }) => {
    const caller = await claimNew()
    const [called] = (await call(caller, ['a'])) as [Claim]
    await domain.runs.cancel(principal.accountId, called.runId)
    return { ids: idsOf([caller, called]), act: () => domain.queue.handBack(called, 'The deployment is gone.') }
  },
  'the end of a run that signs in': async ({ domain, claimNew, queueAll, set }) => {
    const waiting = await queueAll(2)
    await set(waiting, { delayed: 1 })
    const claim = await claimNew()
    const later = await queueAll(1)
    await set([...waiting, ...later], { ...waitsForSession, delayed: 0 })
    await set([claim.runId], { signs_in: 'byHand', browser_context_id: waitsForSession.browser_context_id })
    const act = () => domain.queue.complete(claim, failedAttempt, noRetry)
    return { ids: [...waiting, ...later, claim.runId], act }
  },
  'the cancellation of runs with those that they have called': async ({ domain, principal, call, claimNew }) => {
    const caller = await claimNew()
    const [first] = (await call(caller, ['a'])) as [Claim]
    const below = await call(first, ['a'])
    const other = await claimNew()
    const [second] = (await call(caller, ['b'])) as [Claim]
    const ids = [second.runId, other.runId, first.runId]
    const act = () => domain.store.write((tx) => cancelRuns(tx, principal.accountId, ids, {}, 0), { concurrent: true })
    return { ids: idsOf([caller, first, ...below, other, second]), act }
  },
  maintenance: async ({ clock, domain, call, claimNew, queueAll, set }) => {
    const caller = await claimNew()
    const called = await call(caller, ['a'])
    const wait = { name: 'pause', kind: 'sleep', deadline: clock.now() + 1 } as const
    await domain.queue.wait(caller, { reached: [wait], names: ['pause'], suspend: undefined }, [])
    const [delayed, expiring, session] = (await queueAll(3)) as [string, string, string]
    await set([delayed], { delayed: 1, available_at: 1 })
    await set([expiring], { expires_at: 1 })
    await set([session], { ...waitsForSession, available_at: 1 })
    clock.advance(3600)
    await set([caller.runId], { lease_expires_at: clock.now() + 60_000 })
    return { ids: [delayed, expiring, session, ...idsOf([...called, caller])], act: () => domain.maintenance.once() }
  },
  'the deletion of an account': async ({ domain, call, claimNew, clock }) => {
    const caller = await claimNew()
    const ids = idsOf([...(await call(caller, ['a'])), caller])
    clock.advance(3600)
    return { ids, act: () => domain.store.write((tx) => hideOrStopRuns(tx, ids, clock.now())) }
  },
  'the purge of runs': async ({ domain, queueAll }) => {
    const ids = (await queueAll(3)).toReversed()
    return { ids, act: () => domain.store.write((tx) => deleteRuns(tx, ids), { concurrent: true }) }
  },
  'a put of a value that runs wait for': async ({ domain, principal, queueAll, set }) => {
    const ids = await queueAll(3)
    for (const id of ids.toReversed()) await set([id], { delayed: 1, reason: 'secretMissing:a' })
    const act = () => domain.store.write((tx) => wakeRuns(tx, 1, principal.accountId, 'secretMissing:a'))
    return { ids, act }
  },
  'a state that runs may be signed in with': async ({ domain, queueAll, set }) => {
    const ids = await queueAll(3)
    for (const id of ids.toReversed()) await set([id], waitsForSession)
    const act = () => domain.store.write((tx) => resumeForSession(tx, waitsForSession.browser_context_id, 1))
    return { ids, act }
  },
}

const gone = {
  status: 'deleted',
  parent_run_id: null,
  signs_in: null,
  browser_context_id: null,
  finished_at: 0,
} as const
const waitsForSession = { status: 'waiting', waiting_for: 'signIn', browser_context_id: 'context' } as const

async function connect(test: Test, { location }: Domain): Promise<pg.Client> {
  const client = new pg.Client(location)
  await client.connect()
  test.onTestFinished(() => client.end())
  await client.query('SET search_path TO execution_service')
  return client
}

const waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

test.for(Object.entries(operations))('%s waits for runs in the order of their ids', async ([, prepare], test) => {
  const opened = await open(test)
  const { domain } = opened
  const other = await connect(test, domain)
  const count = (await prepare(opened)).ids.length
  for (let index = 0; index < count; index += 1) {
    await domain.store.write(({ query }) => query.updateTable('runs').set(gone).execute())
    const { ids, act } = await prepare(opened)
    const [locked, ...later] = ids.toSorted().slice(index)
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM runs WHERE id = $1 FOR UPDATE', [locked])
    let hasEnded = false
    const acting = act().finally(() => {
      hasEnded = true
    })
    const isWaiting = async () => (await other.query(waiting)).rows.length > 0
    await vi.waitUntil(async () => hasEnded || (await isWaiting()), waitLimits)
    expect(hasEnded, `it waits for run ${index} of ${count}`).toBe(false)
    const free = await other.query('SELECT id FROM runs WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED', [later])
    expect(free.rows.map(({ id }) => id).sort()).toEqual(later)
    await other.query('ROLLBACK')
    await acting
  }
})

test.for(['group', 'context'] as const)(
  'what makes the next run of a %s ready waits for no run',
  async (kind, test) => {
    const { domain, queueAll, set } = await open(test)
    const [first, second] = (await queueAll(2)) as [string, string]
    const queue = {
      group: { waiting_for: 'concurrencyGroup', concurrency_group: 'queue' },
      context: { waiting_for: 'browserContext', browser_context_id: 'queue' },
    } as const
    await set([first, second], queue[kind])
    const other = await connect(test, domain)
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM runs WHERE id = $1 FOR UPDATE', [first])
    const { resumeNextOfGroup, resumeNextForContext } = domain.store.read.statements
    await domain.store.write((tx) => tx.all(kind === 'group' ? resumeNextOfGroup : resumeNextForContext, ['queue']))
    await other.query('ROLLBACK')
    const rows = await domain.store.read.query.selectFrom('runs').select(['id', 'waiting_for']).orderBy('id').execute()
    expect(rows.map(({ waiting_for }) => waiting_for !== '')).toEqual([true, false])
  },
)

/** How each statement that changes or locks runs keeps the order of locks, by the name in front of its SQL. */
const statements = {
  changesOne: [
    ...['claimRun', 'completeAttempt', 'expireForSession', 'expireRun', 'findClaimable', 'finishRunSql', 'hideRun'],
    ...['lockLeasedRun', 'lockRun', 'repeatHasWaits', 'returnToQueue', 'setHasWaits', 'setProgress', 'setSignsIn'],
    ...['expireAt', 'resume', 'suspend', 'suspendForSignIn', 'unsetSignsIn', 'waitForContext', 'waitForGroup'],
  ],
  changesLocked: [
    ...['cancelUnfinished', 'deleteRuns', 'endDelays', 'hideOrStopRuns', 'resumeRunsOfSession', 'wakeRuns'],
    ...['endSignIn', 'resumeNow', 'resumeRun', 'waits'],
  ],
  locksInOrder: ['extendLeasesSql', 'finishCalledSql', 'finishRunsSql', 'lockEndingSql', 'lockRunsSql'],
  skipsLocked: ['claimRunsSql', 'resumeStatements', 'skipLocked'],
  ofSqlite: ['extendLeases'],
  ofAccounts: ['lockAccount'],
}

const lockOrChange = /UPDATE runs SET|DELETE FROM runs|updateTable\('runs'\)|FOR UPDATE/
const definition = /^(?=(?:export )?(?:async )?(?:const|function) \w+| {2}\w+: statement| {2}async \w+\()/m

test('each statement that changes or locks runs is listed with how it keeps the order', async () => {
  const found = new Set<string>()
  for await (const file of glob('src/{domain,maintenance,storage/migrations,storage/runs}/**/*.ts')) {
    for (const part of (await readFile(file, 'utf8')).split(definition)) {
      const code = part.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
      const name = code.match(/(?:const|function) (\w+)/)?.[1] ?? code.match(/(?!async )\b\w+/)?.[0] ?? ''
      if (lockOrChange.test(code)) found.add(name)
    }
  }
  expect([...found].sort()).toEqual(Object.values(statements).flat().sort())
})
