/** API keys that are restricted to workflows: creation, rotation and use. */
import { describe, expect, test } from 'vitest'
import { workflowIdsMax } from '../../../src/domain/api-keys/workflow-restriction.ts'
import { AuditLog, operator } from '../../../src/domain/audit-log/audit-log.ts'
import { newAccount, openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function openAccount(test: Test, kind: StoreKind, { scopesEnabled = true } = {}) {
  const domain = await openDomain(test, { kind })
  const { accountId, userId } = await newAccount(domain, { scopesEnabled })
  const create = (scopes: string[] | null, workflowIds: string[] | null) => {
    return domain.apiKeys.create({ accountId, userId, name: 'worker', scopes, workflowIds, expiresAt: null }, operator)
  }
  return { domain, accountId, create }
}

describe.each(stores)('a key that is restricted to workflows ($name)', (kind) => {
  test('is listed, authenticated and rotated with its workflows, which the audit log has', async (test) => {
    const { domain, accountId, create } = await openAccount(test, kind)
    const workflowIds = ['send-invoice', 'remind']
    const key = await create(['runs:execute'], [...workflowIds, 'remind'])
    expect(await domain.apiKeys.get(accountId, key.id)).toMatchObject({ scopes: ['runs:execute'], workflowIds })
    const principal = { accountId, apiKeyId: key.id, workflowIds }
    expect(await domain.apiKeys.authenticate(key.value)).toMatchObject({ principal, permits: expect.any(Function) })
    const rotated = await domain.apiKeys.rotate(accountId, key.id, crypto.randomUUID(), operator)
    expect(rotated).toMatchObject({ scopes: ['runs:execute'], workflowIds })
    const again = await domain.apiKeys.authenticate(rotated?.value ?? '')
    expect(again).toMatchObject({ principal: { ...principal, apiKeyId: rotated?.id } })
    const [created] = await new AuditLog(domain.store).list(accountId, { action: 'apiKey.created', limit: 1 })
    expect(created).toMatchObject({ subject: { id: key.id }, details: { workflows: workflowIds } })
  })

  test('is refused without scopes, with scopes that concern the account, and with other texts than ids', async (test) => {
    const { create } = await openAccount(test, kind)
    const chosen = 'Choose from runs:write, runs:read, runs:execute, waits:write, workflows:read.'
    const refusals: [scopes: string[] | null, workflowIds: string[], message: string][] = [
      [null, ['greet'], `A key that is restricted to workflows needs scopes. ${chosen}`],
      [
        ['runs:read', 'webhooks:read'],
        ['greet'],
        `A key that is restricted to workflows cannot have the scope webhooks:read. ${chosen}`,
      ],
      [['runs:read'], [], 'Name at least one workflow.'],
      [['runs:read'], ['greet', 'a b'], '"a b" is not the id of a workflow.'],
      [['runs:read'], [''], '"" is not the id of a workflow.'],
      [
        ['runs:read'],
        Array.from({ length: workflowIdsMax + 1 }, (_, index) => `w${index}`),
        'A key may be restricted to 100 workflows at most.',
      ],
    ]
    for (const [scopes, workflowIds, message] of refusals)
      await expect(create(scopes, workflowIds)).rejects.toMatchObject({ about: 'workflows', message })
  })

  test('is refused in an account without scopes', async (test) => {
    const { create } = await openAccount(test, kind, { scopesEnabled: false })
    await expect(create(['runs:read'], ['greet'])).rejects.toMatchObject({ about: 'scopes' })
    await expect(create(null, ['greet'])).rejects.toMatchObject({ about: 'workflows' })
  })
})
