/** Secret variables at rest: encrypted, and bound to their run. */

import { describe, expect, test } from 'vitest'
import { secretsAad } from '../../../src/domain/runs/run.ts'
import { claimableOf } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const withSecret = workflow({
  variables: {
    type: 'object',
    properties: {
      password: { type: 'string', writeOnly: true },
      login: { type: 'object', properties: { codes: { type: 'array', items: { type: 'number', writeOnly: true } } } },
    },
  },
})

describe.each(stores)('secret variables ($name)', (kind) => {
  test('the store contains no plain text of a secret, nor does the idempotency key reveal it', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [withSecret] })
    const { principal } = await newAccount(domain)
    const canary = { password: 'canary-7f3a-password', code: 912345678901, plain: 'canary-that-is-not-secret' }
    const variables = { password: canary.password, login: { codes: [1, canary.code] }, other: canary.plain }
    const run = await queueRun(domain, principal, { variables, idempotencyKey: 'key' })
    await queueRun(domain, principal, { variables, idempotencyKey: 'key' })
    expect(run.variables).toEqual({
      password: '********',
      login: { codes: ['********', '********'] },
      other: canary.plain,
    })
    const contents = await kind.contents(domain.location)
    expect(contents.includes(canary.plain)).toBe(true)
    expect(contents.includes(canary.password)).toBe(false)
    expect(contents.includes(String(canary.code))).toBe(false)
  })

  test('the worker that claims the run can decrypt its secrets', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [withSecret] })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal, { variables: { password: 'p', login: { codes: [1, 2] } } })
    const [claim] = await domain.queue.claim('worker', claimableOf([withSecret]), 1, 15)
    const aad = secretsAad(principal.accountId, run.id)
    const secrets = JSON.parse(domain.encryption.decrypt(claim?.secrets ?? new Uint8Array(), aad))
    expect(secrets).toEqual({ '/password': 'p', '/login/codes/0': 1, '/login/codes/1': 2 })
  })

  test('secrets that were moved to another run cannot be decrypted', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [withSecret] })
    const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
    const runs = [
      await queueRun(domain, mine.principal, { variables: { password: 'first' } }),
      await queueRun(domain, mine.principal, { variables: { password: 'second' } }),
      await queueRun(domain, theirs.principal, { variables: { password: 'third' } }),
    ]
    const blobs = await domain.store.read.query.selectFrom('runs').select(['id', 'secrets']).orderBy('id').execute()
    const moved = blobs.map(({ id }, index) => ({ id, secrets: blobs[(index + 1) % blobs.length]?.secrets ?? null }))
    await domain.store.write(async ({ query }) => {
      for (const { id, secrets } of moved)
        await query.updateTable('runs').set({ secrets }).where('id', '=', id).execute()
    })
    const claims = await domain.queue.claim('worker', claimableOf([withSecret]), 10, 15)
    expect(claims.map(({ runId }) => runId).sort()).toEqual(runs.map(({ id }) => id).sort())
    for (const { accountId, runId, secrets } of claims) {
      expect(() => domain.encryption.decrypt(secrets ?? new Uint8Array(), secretsAad(accountId, runId))).toThrow()
    }
  })

  test('a run without secrets stores none', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [withSecret] })
    const { principal } = await newAccount(domain)
    await queueRun(domain, principal, { variables: { other: 1 } })
    const [claim] = await domain.queue.claim('worker', claimableOf([withSecret]), 1, 15)
    expect(claim).toMatchObject({ secrets: null, variables: { other: 1 } })
  })
})
