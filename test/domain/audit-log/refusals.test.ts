/** Refused keys and sign-ins are logged with the address and audited in their account, in bounded numbers. */
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { ApiKeys } from '../../../src/domain/api-keys/api-keys.ts'
import { AuditLog, operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Refusals } from '../../../src/domain/audit-log/refusals.ts'
import { knownScopes } from '../../../src/openapi/served-documents.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { newAccount, openDomain, type Test } from '../../support/domain.ts'
import type { LogLine } from '../../support/service.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const minute = 60_000
const hour = 60 * minute

async function openRefusals(test: Test, kind: StoreKind) {
  const clock = { time: Date.now() }
  const now = () => clock.time
  const domain = await openDomain(test, { kind })
  const { store } = domain
  const lines: LogLine[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const refusals = new Refusals(store, log, now)
  const apiKeys = new ApiKeys(store, knownScopes(), now, refusals)
  test.onTestFinished(async () => {
    await apiKeys.close()
    await refusals.close()
  })
  const account = await newAccount(domain)
  const auditLog = new AuditLog(store)
  /** Flushes, and returns the account's entries of refusals, oldest first. */
  const listEntries = async () => {
    await refusals.flush()
    const entries = await auditLog.list(account.accountId, { limit: 200 })
    const refused = entries.filter(({ by }) => by.kind === 'caller').reverse()
    return refused.map(({ action, by, subject, details }) => [action, by.name, subject?.id, details.count])
  }
  const user = {
    action: 'user.signInRefused',
    accountId: account.accountId,
    subject: { id: 'u', name: 'Ada' },
  } as const
  return { ...domain, ...account, clock, lines, refusals, apiKeys, auditLog, listEntries, user }
}

const line = (message: string, fields: object) => expect.objectContaining({ level: 40, msg: message, ...fields })

describe.each(stores)('refusals ($name)', (kind) => {
  test('an unknown key is logged with the address, and in no audit log', async (test) => {
    const { apiKeys, lines, listEntries } = await openRefusals(test, kind)
    const value = crypto.randomUUID()
    for (const text of [value, 'no key']) expect(await apiKeys.authenticate(text, '10.0.0.7 curl/8')).toBeUndefined()
    expect(lines).toEqual([line('API key refused', { address: '10.0.0.7', count: 1 })])
    expect(JSON.stringify(lines)).not.toContain(value)
    expect(await listEntries()).toEqual([])
  })

  test('the use of a deleted, rotated or expired key is in the audit log of its account', async (test) => {
    const { apiKeys, accountId, userId, key, clock, listEntries } = await openRefusals(test, kind)
    const draft = { accountId, userId, name: 'Short', scopes: null, expiresAt: clock.time + minute }
    const short = await apiKeys.create(draft, operator)
    await apiKeys.rotate(accountId, key.id, uuid(), operator)
    clock.time += minute
    for (const { value } of [key, short]) {
      // A running request that is checked again is no new refusal.
      expect(await apiKeys.authenticate(value)).toBeUndefined()
    }
    expect(await listEntries()).toEqual([])
    for (const { value } of [key, short, short])
      expect(await apiKeys.authenticate(value, '10.0.0.7 curl/8')).toBeUndefined()
    const first = [
      ['apiKey.usedAfterDeletion', '10.0.0.7 curl/8', key.id, undefined],
      ['apiKey.usedAfterExpiry', '10.0.0.7 curl/8', short.id, undefined],
    ]
    expect(await listEntries()).toEqual(first)
    clock.time += hour
    const rest = ['apiKey.usedAfterExpiry', '10.0.0.7 curl/8', short.id, undefined]
    expect(await listEntries()).toEqual([...first, rest])
  })

  test('of many refusals, the first is recorded at once and the others as one count', async (test) => {
    const { refusals, lines, clock, listEntries, user, accountId } = await openRefusals(test, kind)
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      refusals.record({ message: 'sign-in refused', client: `10.0.0.${attempt % 20}`, audit: user })
    }
    expect(lines).toHaveLength(20)
    expect(lines[0]).toEqual(line('sign-in refused', { address: '10.0.0.0', count: 1, accountId, subjectId: 'u' }))
    expect(await listEntries()).toEqual([['user.signInRefused', '10.0.0.0', 'u', undefined]])
    clock.time += minute
    await refusals.flush()
    expect(lines).toHaveLength(40)
    expect(lines.at(-1)).toEqual(line('sign-in refused', { address: '10.0.0.19', count: 49 }))
    clock.time += hour
    const others = ['user.signInRefused', '10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5', 'u', 999]
    expect((await listEntries()).slice(1)).toEqual([others])
  })

  test('addresses beyond the hundredth of a minute share one line', async (test) => {
    const { refusals, lines, clock } = await openRefusals(test, kind)
    for (let client = 0; client < 5000; client += 1) {
      refusals.record({ message: 'API key refused', client: `10.0.${client >> 8}.${client & 255}` })
    }
    expect(lines).toHaveLength(101)
    expect(lines.at(-1)).toEqual(line('API key refused', { clients: ['10.0.0.100'], count: 1 }))
    clock.time += minute
    await refusals.flush()
    expect(lines).toHaveLength(102)
    expect(lines.at(-1)).toMatchObject({ count: 4899 })
  })

  test('an entry that could not be written is written later', async (test) => {
    const { refusals, store, listEntries, user } = await openRefusals(test, kind)
    const write = store.write
    store.write = async () => {
      throw new StoreUnavailable('The disk is full.')
    }
    refusals.record({ message: 'sign-in refused', client: '10.0.0.7', audit: user })
    await refusals.flush()
    store.write = write
    expect(await listEntries()).toEqual([['user.signInRefused', '10.0.0.7', 'u', undefined]])
  })

  test('closing records what is not recorded yet', async (test) => {
    const { refusals, lines, listEntries, user } = await openRefusals(test, kind)
    for (const client of ['10.0.0.7', '10.0.0.8']) refusals.record({ message: 'sign-in refused', client, audit: user })
    await refusals.close()
    expect(lines).toHaveLength(2)
    expect(await listEntries()).toEqual([
      ['user.signInRefused', '10.0.0.7', 'u', undefined],
      ['user.signInRefused', '10.0.0.8', 'u', undefined],
    ])
  })
})
