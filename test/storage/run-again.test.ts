/** Queueing a run again with the secrets of an earlier one, which nobody can read; and who is told to have queued it. */
import { v4 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { secretsAad } from '../../src/domain/runs/run.ts'
import type { QueueRequest } from '../../src/domain/runs/runs.ts'
import { type Domain, newAccount, openDomain, queueRun, request, type Test, workflow } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const mask = '********'
const secret = { type: 'string', writeOnly: true }
const variables = { type: 'object', properties: { user: { type: 'string' }, password: secret, token: secret } }
const misfits = (...members: string[]) =>
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

/** What the workers are given for the run. */
async function secretsOf({ store, encryption }: Domain, accountId: string, runId: string) {
  const [row] = await store.read.all<{ secrets: Uint8Array | null }>('SELECT secrets FROM runs WHERE id = ?', [runId])
  return row?.secrets ? JSON.parse(encryption.decrypt(row.secrets, secretsAad(accountId, runId))) : {}
}

describe.each(stores)('queueing a run again ($name)', (kind) => {
  test('gives it the secrets of the earlier run where their masks stand, and shows them no more than before', async (test) => {
    const { domain, earlier, accountId, principal } = await openWithSecrets(test, kind)
    const copied = { ...earlier.variables, user: 'Grace' }
    const run = await queueRun(domain, principal, { variables: copied, secretsFrom: earlier.id.toUpperCase() })
    expect(run.variables).toEqual({ user: 'Grace', password: mask })
    expect(await secretsOf(domain, accountId, run.id)).toEqual({ '/password': 'very secret' })
    expect(await domain.runs.get(accountId, run.id)).toEqual(run)
    const changed = { variables: { password: 'another' }, secretsFrom: earlier.id }
    const other = await queueRun(domain, principal, changed)
    expect(await secretsOf(domain, accountId, other.id)).toEqual({ '/password': 'another' })
  })

  test('gives secrets with other variables beside them only to who has queued the earlier run', async (test) => {
    const { domain, earlier, accountId } = await openWithSecrets(test, kind)
    const ownerId = await domain.accounts.findOwnerId(accountId)
    const somebody = { accountId, apiKeyId: null, userId: uuid() }
    const same = { ...request, variables: { ...earlier.variables }, secretsFrom: earlier.id }
    const other = { ...same, variables: { ...earlier.variables, user: 'Mallory' } }
    expect(await domain.runs.queue(somebody, other)).toEqual({ kind: 'variablesInvalid', errors: misfits('password') })
    const again = await domain.runs.queue(somebody, same)
    if (again.kind !== 'queued') throw new Error('The same variables may be queued again by everybody.')
    expect(await secretsOf(domain, accountId, again.run.id)).toEqual({ '/password': 'very secret' })
    const mine = { ...other, secretsFrom: again.run.id }
    expect(await domain.runs.queue({ ...somebody, userId: ownerId }, mine)).toMatchObject({ kind: 'variablesInvalid' })
    expect(await domain.runs.queue(somebody, mine)).toMatchObject({ kind: 'queued' })
  })

  test('is refused for a mask that no secret stands behind, and nothing is kept', async (test) => {
    const { domain, earlier, accountId, principal } = await openWithSecrets(test, kind)
    const queue = (changes: Partial<QueueRequest>) => domain.runs.queue(principal, { ...request, ...changes })
    const copied = earlier.variables
    expect(await queue({ variables: copied })).toEqual({ kind: 'variablesInvalid', errors: misfits('password') })
    const more = { ...copied, token: mask }
    const refused = { kind: 'variablesInvalid', errors: misfits('token') }
    expect(await queue({ variables: more, secretsFrom: earlier.id })).toEqual(refused)
    expect((await domain.runs.list(accountId, { limit: 10 }))?.runs).toHaveLength(1)
  })

  test('has no secrets from a run of another account or workflow, from one without any, or from none', async (test) => {
    const { domain, earlier, principal } = await openWithSecrets(test, kind)
    const theirs = await newAccount(domain)
    const plain = await queueRun(domain, principal, { variables: { user: 'Ada' } })
    const refused = { kind: 'variablesInvalid', errors: misfits('password') }
    const again = { ...request, variables: earlier.variables, secretsFrom: earlier.id }
    expect(await domain.runs.queue(theirs.principal, again)).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, workflowId: 'other' })).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, secretsFrom: plain.id })).toEqual(refused)
    expect(await domain.runs.queue(principal, { ...again, secretsFrom: 'no-such-run' })).toEqual(refused)
  })

  test('is the same request under an idempotency key only with the secrets of the same run', async (test) => {
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
  test('tells the API key or the user that has queued it, also in a list', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId, userId, principal } = await newAccount(domain)
    const byKey = await queueRun(domain, principal)
    expect(byKey).toMatchObject({ apiKeyId: principal.apiKeyId, userId: null })
    const queued = await domain.runs.queue({ accountId, apiKeyId: null, userId }, request)
    if (queued.kind !== 'queued') throw new Error('The run was not queued.')
    expect(queued.run).toMatchObject({ apiKeyId: null, userId })
    expect(await domain.runs.get(accountId, queued.run.id)).toEqual(queued.run)
    expect((await domain.runs.list(accountId, { limit: 10 }))?.runs).toEqual([queued.run, byKey])
  })
})
