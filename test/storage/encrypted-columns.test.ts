/** Re-encryption covers every encrypted value, and does not undo concurrent changes. */

import { hash, randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { ContextVersions } from '../../src/domain/browser-contexts/context-versions.ts'
import { encryptedColumns } from '../../src/domain/installation.ts'
import { secretsAad, stepAad } from '../../src/domain/runs/run.ts'
import { reencrypt } from '../../src/storage/encrypted-columns.ts'
import { Encryption, FixedKeys, keyBytes } from '../../src/storage/encryption.ts'
import type { Store, Transaction } from '../../src/storage/store.ts'
import { claimableOf } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const withSecret = workflow({
  variables: { type: 'object', properties: { password: { type: 'string', writeOnly: true } } },
})

const emptyState = JSON.stringify({ cookies: [], origins: [] })

/** Opens a domain with an account, and its encryption after a rotation of the key. */
async function openRotated(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind, workflows: [withSecret] })
  const newer = randomBytes(keyBytes)
  const keys = [newer, hash('sha256', domain.location, 'buffer')]
  const { principal } = await newAccount(domain)
  return {
    ...domain,
    principal,
    rotated: new Encryption(new FixedKeys(keys)),
    newKeyOnly: new Encryption(new FixedKeys([newer])),
  }
}

async function queueMany(domain: Domain, principal: { accountId: string; apiKeyId: string }, count: number) {
  const queue = (_: unknown, index: number) => queueRun(domain, principal, { variables: { password: `p-${index}` } })
  return Promise.all(Array.from({ length: count }, queue))
}

/** Returns the passwords, decrypted with these keys. */
async function readPasswords({ read }: Store, encryption: Encryption): Promise<string[]> {
  const rows = await read.query.selectFrom('runs').select(['id', 'account_id', 'secrets']).orderBy('id').execute()
  return rows.flatMap(({ id, account_id, secrets }) =>
    secrets ? [JSON.parse(encryption.decrypt(secrets, secretsAad(account_id, id)))['/password']] : [],
  )
}

describe.each(stores)('re-encryption ($name)', (kind) => {
  test('covers every encrypted column: the older key is not needed afterwards', async (test) => {
    const domain = await openRotated(test, kind)
    const { store, principal, rotated, newKeyOnly } = domain
    await queueMany(domain, principal, 150)
    await queueRun(domain, principal)
    const [claim] = await domain.queue.claim('worker', claimableOf([withSecret]), 1, 15)
    if (!claim) throw new Error('No run was claimed.')
    for (const name of ['first', 'second']) {
      const step = { name, position: 1 }
      await domain.queue.finishStep(claim, step, () => domain.encryption.encrypt(name, stepAad(claim.runId, name)), [])
    }
    const context = await domain.browserContexts.create(principal.accountId, 'Test')
    if (!context) throw new Error('No context was created.')
    for (const name of ['a', 'b']) {
      const state = JSON.stringify({ cookies: [], origins: [{ origin: `https://${name}.example`, localStorage: [] }] })
      await domain.contextVersions.replace(principal.accountId, context.id, state, { apiKeyId: principal.apiKeyId })
    }
    expect(await reencrypt(store, rotated, encryptedColumns)).toEqual({ values: 154, failures: [] })
    expect((await readPasswords(store, newKeyOnly)).sort()).toEqual(
      Array.from({ length: 150 }, (_, index) => `p-${index}`).sort(),
    )
    const steps = await store.read.query.selectFrom('run_steps').selectAll().execute()
    expect(steps.map(({ run_id, name, value }) => newKeyOnly.decrypt(value, stepAad(run_id, name)))).toEqual([
      'first',
      'second',
    ])
    const versions = new ContextVersions(store, newKeyOnly, 5)
    expect(await versions.read(principal.accountId, context.id)).toContain('https://b.example')
    expect(await reencrypt(store, rotated, encryptedColumns)).toEqual({ values: 0, failures: [] })
    await expectDescribed(store)
  })

  test('cannot be undone by a pending write, since values are encrypted inside the transaction', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [withSecret] })
    const { principal } = await newAccount(domain)
    const context = await domain.browserContexts.create(principal.accountId, 'Test')
    if (!context) throw new Error('No context was created.')
    let writing = 0
    const write = domain.store.write
    vi.spyOn(domain.store, 'write').mockImplementation((work, options) => {
      const counted = async (tx: Transaction) => {
        writing += 1
        return work(tx).finally(() => {
          writing -= 1
        })
      }
      return write(counted, options)
    })
    const encryptedInTransaction: boolean[] = []
    const encrypt = domain.encryption.encrypt.bind(domain.encryption)
    vi.spyOn(domain.encryption, 'encrypt').mockImplementation((text, aad) => {
      encryptedInTransaction.push(writing > 0)
      return encrypt(text, aad)
    })
    await queueRun(domain, principal, { variables: { password: 'hunter2' } })
    await domain.contextVersions.replace(principal.accountId, context.id, emptyState, { apiKeyId: principal.apiKeyId })
    expect(encryptedInTransaction).toEqual([true, true])
  })

  test('processes values of megabytes one at a time, and misses none', async (test) => {
    const domain = await openRotated(test, kind)
    const passwords = Array.from({ length: 5 }, (_, index) => String(index).repeat(900_000))
    for (const password of passwords) await queueRun(domain, domain.principal, { variables: { password } })
    const sizes: number[] = []
    const counting: Store = {
      ...domain.store,
      write: (work) => {
        sizes.push(1)
        return domain.store.write(work)
      },
    }
    expect(await reencrypt(counting, domain.rotated, encryptedColumns)).toMatchObject({ values: 5 })
    expect(sizes).toHaveLength(5)
    expect(await readPasswords(domain.store, domain.newKeyOnly)).toEqual(passwords)
  })

  test('keeps a value that another process changes or erases concurrently', async (test) => {
    const domain = await openRotated(test, kind)
    const { store, principal, rotated } = domain
    const [changed, erased] = await queueMany(domain, principal, 3)
    if (!changed || !erased) throw new Error('No run was queued.')
    const change = (id: string, secrets: Uint8Array | null) =>
      store.write(({ query }) => query.updateTable('runs').set({ secrets }).where('id', '=', id).execute())
    const aad = secretsAad(principal.accountId, changed.id)
    // Between reading and writing a batch.
    const interrupted: Store = {
      ...store,
      async write(work) {
        await change(changed.id, domain.encryption.encrypt('{"/password":"changed"}', aad))
        await change(erased.id, null)
        interrupted.write = store.write
        return store.write(work)
      },
    }
    expect(await reencrypt(interrupted, rotated, encryptedColumns)).toEqual({ values: 2, failures: [] })
    expect((await readPasswords(store, domain.newKeyOnly)).sort()).toEqual(['changed', 'p-2'])
  })

  test('by two processes at once handles each value exactly once', async (test) => {
    const domain = await openRotated(test, kind)
    await queueMany(domain, domain.principal, 200)
    const done = await Promise.all([1, 2].map(() => reencrypt(domain.store, domain.rotated, encryptedColumns)))
    expect((done[0]?.values ?? 0) + (done[1]?.values ?? 0)).toBe(200)
    expect(await readPasswords(domain.store, domain.newKeyOnly)).toHaveLength(200)
  })

  test('skips values that cannot be decrypted, and reports where they are', async (test) => {
    const domain = await openRotated(test, kind)
    const { store, principal, rotated } = domain
    const [first, second] = await queueMany(domain, principal, 3)
    const secrets = new Encryption(new FixedKeys([randomBytes(keyBytes)])).encrypt('{}', 'aad')
    await store.write(({ query }) =>
      query
        .updateTable('runs')
        .set({ secrets })
        .where('id', 'in', [first?.id ?? ''])
        .execute(),
    )
    const { values, failures } = await reencrypt(store, rotated, encryptedColumns)
    expect(values).toBe(2)
    expect(failures).toEqual([
      expect.stringContaining(`runs.secrets of ${first?.id}: A value in the store is encrypted`),
    ])
    expect(second).toBeDefined()
  })
})

/** Binary columns that are not encrypted. */
const unencrypted = [
  'api_keys.hash',
  'artifacts.content',
  'file_parts.content',
  'bulk_actions.fingerprint',
  'deployments.files',
  'idempotency_keys.fingerprint',
  'recovery_codes.hash',
  'sessions.hash',
  'sign_in_links.hash',
  'wait_links.hash',
]

async function expectDescribed({ read }: Store): Promise<void> {
  const tables = (await read.query.introspection.getTables()) ?? []
  const blobs = tables.flatMap(({ name, columns }) =>
    columns.filter(({ dataType }) => /^(blob|bytea)$/i.test(dataType)).map((column) => `${name}.${column.name}`),
  )
  const described = encryptedColumns.map(({ table, column }) => `${table}.${column}`)
  expect(blobs.sort()).toEqual([...unencrypted, ...described].sort())
}
