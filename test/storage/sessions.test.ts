/** Dashboard sessions, found by their ID until they end or expire. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hashToken, Sessions } from '../../src/domain/accounts/sessions.ts'
import { newAccount, openDomain, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

async function openSessions(test: Test, kind: StoreKind, now = Date.now) {
  const domain = await openDomain(test, { kind })
  const { userId } = await newAccount(domain)
  return { domain, userId, sessions: new Sessions(domain.store, now) }
}

const newId = () => randomBytes(24).toString('base64url')

describe.each(stores)('sessions ($name)', (kind) => {
  test('a session is found by its ID, which the store does not contain', async (test) => {
    const { domain, userId, sessions } = await openSessions(test, kind)
    const id = newId()
    const session = { userId, data: '{"canary":"data"}', expiresAt: Date.now() + 60_000 }
    await sessions.create(id, session)
    expect(await sessions.get(id)).toEqual(session)
    expect(await sessions.get(hashToken(id).toString('base64url'))).toBeUndefined()
    expect(await sessions.get('')).toBeUndefined()
    const contents = await kind.contents(domain.location)
    expect(contents.includes('canary')).toBe(true)
    expect(contents.includes(id)).toBe(false)
    expect(contents.includes(Buffer.from(id, 'base64url'))).toBe(false)
  })

  test('a deleted session is refused by every process once the deletion has returned', async (test) => {
    const { domain, userId, sessions } = await openSessions(test, kind)
    const other = new Sessions((await openDomain(test, { kind, location: domain.location })).store)
    const [ended, kept] = [newId(), newId()]
    for (const id of [ended, kept]) await sessions.create(id, { userId, data: '{}', expiresAt: Date.now() + 60_000 })
    await sessions.delete(ended)
    expect(await other.get(ended)).toBeUndefined()
    expect(await sessions.get(ended)).toBeUndefined()
    expect(await other.get(kept)).toBeDefined()
    await sessions.delete(ended)
  })

  test('an expired session is refused, and deleted when another one is created', async (test) => {
    let time = Date.now()
    const { domain, userId, sessions } = await openSessions(test, kind, () => time)
    const [old, young] = [newId(), newId()]
    await sessions.create(old, { userId, data: '{}', expiresAt: time + 1000 })
    time += 999
    expect(await sessions.get(old)).toBeDefined()
    time += 1
    expect(await sessions.get(old)).toBeUndefined()
    await sessions.create(young, { userId, data: '{}', expiresAt: time + 1000 })
    const rows = await domain.store.read.query.selectFrom('sessions').select('hash').execute()
    expect(rows.map(({ hash }) => Buffer.from(hash))).toEqual([hashToken(young)])
  })

  test('creating a session with an existing ID changes nothing', async (test) => {
    const { domain, userId, sessions } = await openSessions(test, kind)
    const { userId: another } = await newAccount(domain)
    const id = newId()
    const expiresAt = Date.now() + 60_000
    await sessions.create(id, { userId, data: '{"a":1}', expiresAt })
    await sessions.create(id, { userId: another, data: '{"a":2}', expiresAt: expiresAt + 1 })
    expect(await sessions.get(id)).toEqual({ userId, data: '{"a":1}', expiresAt })
  })
})
