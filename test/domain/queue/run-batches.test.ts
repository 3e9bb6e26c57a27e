/** Batches of runs are stored all or none, and once for an idempotency key. */
import { describe, expect, test } from 'vitest'
import { type Domain, newAccount, openDomain, request, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const variables = {
  type: 'object',
  properties: { token: { type: 'string', writeOnly: true }, text: { type: 'string' } },
}

async function open(
  test: Test,
  kind: StoreKind,
  options: { queuedRunsMax?: number; storageQuotaMegabytes?: number } = {},
) {
  const shared = { kind, workflows: [workflow({ variables })], ...options }
  const domain = await openDomain(test, shared)
  const other = await openDomain(test, { ...shared, location: domain.location })
  return { domain, other, ...(await newAccount(domain)) }
}

async function countRuns({ store }: Domain): Promise<number> {
  const [row] = await store.read.all<{ count: number }>('SELECT COUNT(*) AS count FROM runs', [])
  return row?.count ?? 0
}

const requests = (count: number, changes: object = {}) =>
  Array.from({ length: count }, (_, index) => ({ ...request, variables: { text: String(index) }, ...changes }))

describe.each(stores)('a batch of runs ($name)', (kind) => {
  test('queues 1000 runs in their order', async (test) => {
    const { domain, principal } = await open(test, kind)
    const queued = await domain.runs.queueBatch(principal, requests(1000))
    if (queued.kind !== 'queued') throw new Error(queued.kind)
    expect(queued.runs.map((run) => run.variables.text)).toEqual(requests(1000).map(({ variables }) => variables.text))
    const ids = queued.runs.map(({ id }) => id)
    expect(ids.toSorted()).toEqual(ids)
    expect(await countRuns(domain)).toBe(1000)
  })

  test('queues one batch for twenty simultaneous requests to two processes with the same key', async (test) => {
    const { domain, other, principal } = await open(test, kind)
    const queueing = Array.from({ length: 20 }, (_, index) =>
      (index % 2 ? domain : other).runs.queueBatch(principal, requests(10), 'once'),
    )
    const results = await Promise.all(queueing)
    const ids = results.map((each) => (each.kind === 'queued' ? each.runs.map(({ id }) => id) : each.kind))
    expect(new Set(ids.map((each) => JSON.stringify(each))).size).toBe(1)
    expect(results.filter((each) => each.kind === 'queued' && !each.replayed)).toHaveLength(1)
    expect(await countRuns(domain)).toBe(10)
  })

  test('is refused as a whole by the limit of queued runs, over all processes', async (test) => {
    const { domain, other, principal } = await open(test, kind, { queuedRunsMax: 45 })
    const queueing = Array.from({ length: 10 }, (_, index) =>
      (index % 2 ? domain : other).runs.queueBatch(principal, requests(10)),
    )
    const kinds = (await Promise.all(queueing)).map((each) => each.kind)
    expect(kinds.filter((each) => each === 'queued')).toHaveLength(4)
    expect(await countRuns(domain)).toBe(40)
  })

  test('is refused as a whole by the storage quota, before the quota is reached', async (test) => {
    const { domain, principal } = await open(test, kind, { storageQuotaMegabytes: 1 })
    const large = requests(3, { variables: { text: 'x'.repeat(400_000) } })
    await expect(domain.runs.queueBatch(principal, large)).rejects.toThrow(
      "exceed this account's storage quota of 1 MB",
    )
    expect(await countRuns(domain)).toBe(0)
    expect(await domain.runs.queueBatch(principal, large.slice(1))).toMatchObject({ kind: 'queued' })
  })

  test('stores nothing for a key that another request has used', async (test) => {
    const { domain, principal } = await open(test, kind)
    await domain.store.write((tx) =>
      tx.all('INSERT INTO idempotency_keys (account_id, key, fingerprint, run_id, expires_at) VALUES (?, ?, ?, ?, ?)', [
        principal.accountId,
        'used',
        new Uint8Array(1),
        'run',
        Date.now() + 60_000,
      ]),
    )
    expect(await domain.runs.queueBatch(principal, requests(2), 'used')).toEqual({ kind: 'idempotencyConflict' })
    expect(await countRuns(domain)).toBe(0)
  })
})
