/** Running a run again with its secrets, which remain unreadable; and the caller that a run records. */
import { v4 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import type { QueueRequest } from '../../../src/domain/queue/queue-request.ts'
import { secretsAad } from '../../../src/domain/runs/run.ts'
import { type Domain, newAccount, openDomain, queueRun, request, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const mask = '********'
const secret = { type: 'string', writeOnly: true }
const variables = { type: 'object', properties: { user: { type: 'string' }, password: secret, token: secret } }
const maskErrors = (...members: string[]) =>
  members.map((member) => ({ pointer: `/${member}`, detail: 'is the mask of a secret, not its value' }))

async function openWithSecrets(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, {
    kind,
    workflows: [workflow({ variables }), workflow({ id: 'other', variables })],
  })
  const account = await newAccount(domain)
  const earlier = await queueRun(domain, account.principal, { variables: { user: 'Ada', password: 'very secret' } })
  return { domain, earlier, ...account }
}

/** The secrets that the run's worker gets. */
async function secretsOf({ store, encryption }: Domain, accountId: string, runId: string) {
  const [row] = await store.read.all<{ secrets: Uint8Array | null }>('SELECT secrets FROM runs WHERE id = ?', [runId])
  return row?.secrets ? JSON.parse(encryption.decrypt(row.secrets, secretsAad(accountId, runId))) : {}
}

describe.each(stores)('running a run again ($name)', (kind) => {
  test('replaces masks by the secrets of the earlier run, and masks them again', async (test) => {
    const { domain, earlier, accountId, principal } = await openWithSecrets(test, kind)
    const copied = { ...earlier.variables, user: 'Grace' }
    const from = { secretsFrom: earlier.id.toUpperCase(), rerunOf: earlier.id }
    const run = await queueRun(domain, principal, { variables: copied, ...from })
    expect(run.rerunOf).toBe(earlier.id)
    expect(run.variables).toEqual({ user: 'Grace', password: mask })
    expect(await secretsOf(domain, accountId, run.id)).toEqual({ '/password': 'very secret' })
    expect(await domain.runs.get(accountId, run.id)).toEqual(run)
    const changed = { variables: { password: 'another' }, secretsFrom: earlier.id }
    const other = await queueRun(domain, principal, changed)
    expect(await secretsOf(domain, accountId, other.id)).toEqual({ '/password': 'another' })
  })

  test('reuses secrets with changed variables only for the caller who queued the earlier run', async (test) => {
    const { domain, earlier, accountId } = await openWithSecrets(test, kind)
    const ownerId = await domain.accounts.findAdminId(accountId)
    const otherUser = { accountId, apiKeyId: null, userId: uuid() }
    const same = { ...request, variables: { ...earlier.variables }, secretsFrom: earlier.id }
    const other = { ...same, variables: { ...earlier.variables, user: 'Mallory' } }
    expect(await domain.runs.queue(otherUser, other)).toEqual({
      kind: 'variablesInvalid',
      errors: maskErrors('password'),
    })
    const again = await domain.runs.queue(otherUser, same)
    if (again.kind !== 'queued') throw new Error('Any caller may queue the same variables again.')
    expect(await secretsOf(domain, accountId, again.run.id)).toEqual({ '/password': 'very secret' })
    const mine = { ...other, secretsFrom: again.run.id }
    expect(await domain.runs.queue({ ...otherUser, userId: ownerId }, mine)).toMatchObject({ kind: 'variablesInvalid' })
    expect(await domain.runs.queue(otherUser, mine)).toMatchObject({ kind: 'queued' })
  })

  test('rejects a mask without a secret, and stores nothing', async (test) => {
    const { domain, earlier, accountId, principal } = await openWithSecrets(test, kind)
    const queue = (changes: Partial<QueueRequest>) => domain.runs.queue(principal, { ...request, ...changes })
    const copied = earlier.variables
    expect(await queue({ variables: copied })).toEqual({ kind: 'variablesInvalid', errors: maskErrors('password') })
    const more = { ...copied, token: mask }
    const refused = { kind: 'variablesInvalid', errors: maskErrors('token') }
    expect(await queue({ variables: more, secretsFrom: earlier.id })).toEqual(refused)
    expect((await domain.runs.list(accountId, { limit: 10 }))?.runs).toHaveLength(1)
  })

  test('uses no secrets of a run of another account or workflow, or of an unknown run', async (test) => {
    const { domain, earlier, principal } = await openWithSecrets(test, kind)
    const theirs = await newAccount(domain)
    const plain = await queueRun(domain, principal, { variables: { user: 'Ada' } })
    const refused = { kind: 'variablesInvalid', errors: maskErrors('password') }
    const again = { ...request, variables: earlier.variables, secretsFrom: earlier.id }
    expect(await domain.runs.queue(theirs.principal, again)).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, workflowId: 'other' })).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, secretsFrom: plain.id })).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, secretsFrom: 'no-such-run' })).toEqual(refused)
  })

  test('compares the earlier run with the idempotency key', async (test) => {
    const { domain, earlier, principal } = await openWithSecrets(test, kind)
    const same = { ...request, variables: earlier.variables, idempotencyKey: 'again' }
    const first = await domain.runs.queue(principal, { ...same, secretsFrom: earlier.id })
    expect(first).toMatchObject({ kind: 'queued', replayed: false })
    const second = await domain.runs.queue(principal, { ...same, secretsFrom: earlier.id })
    expect(second).toEqual({ ...first, replayed: true })
    const from = 'run' in first ? first.run.id : ''
    expect(await domain.runs.queue(principal, { ...same, secretsFrom: from })).toEqual({ kind: 'idempotencyConflict' })
  })
})

describe.each(stores)('a run ($name)', (kind) => {
  test('records the API key or the user that queued it', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId, userId, principal } = await newAccount(domain)
    const byKey = await queueRun(domain, principal)
    expect(byKey).toMatchObject({ apiKeyId: principal.apiKeyId, userId: null })
    const queued = await domain.runs.queue({ accountId, apiKeyId: null, userId }, request)
    if (queued.kind !== 'queued') throw new Error('The run was not queued.')
    expect(queued.run).toMatchObject({ apiKeyId: null, userId })
    expect(await domain.runs.get(accountId, queued.run.id)).toEqual(queued.run)
    const listed = [queued.run, byKey].map((run) => ({ ...run, attemptHistory: undefined }))
    expect((await domain.runs.list(accountId, { limit: 10 }))?.runs).toEqual(listed)
  })
})
