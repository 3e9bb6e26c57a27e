/** Run tokens end at their time, and with the API key that made them. */
import { expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { createManualClock } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'

/** A run token of a minute, and its key. */
async function openWithToken(test: Test, { keySeconds = 600 } = {}) {
  const clock = createManualClock()
  const domain = await openDomain(test, { now: clock.now })
  const { accountId, userId } = await newAccount(domain)
  const expiresAt = clock.now() + keySeconds * 1000
  const key = await domain.apiKeys.create({ accountId, userId, name: 'Key', scopes: null, expiresAt }, operator)
  const principal = { accountId, apiKeyId: key.id }
  const { id: runId } = await queueRun(domain, principal)
  const { token, expiresAt: end } = domain.runTokens.create(principal, runId, 60)
  const isValid = async () => (await domain.runTokens.authenticate(token)) !== undefined
  expect(await isValid()).toBe(true)
  return { clock, domain, accountId, key, end, isValid }
}

test('a run token is refused from its end on', async (test) => {
  const { clock, end, isValid } = await openWithToken(test)
  clock.set(end - 1)
  expect(await isValid()).toBe(true)
  clock.set(end)
  expect(await isValid()).toBe(false)
})

test('a run token ends when its API key expires, even if the clock steps back', async (test) => {
  const { clock, key, isValid } = await openWithToken(test, { keySeconds: 30 })
  clock.set(key.expiresAt)
  expect(await isValid()).toBe(false)
  clock.advance(-20)
  expect(await isValid()).toBe(false)
})

test('a run token ends when its API key is deleted', async (test) => {
  const { domain, accountId, key, isValid } = await openWithToken(test)
  await domain.apiKeys.delete(accountId, key.id, operator)
  expect(await isValid()).toBe(false)
})
