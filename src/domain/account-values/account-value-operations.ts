/** The Execution API's operations on secrets and settings. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import type { ValueKind } from './account-values.sql.ts'
import { type AccountValue, type AccountValues, valuesMax } from './account-values.ts'
import { findDeclaring } from './declared-values.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  'listSecrets' | 'putSecret' | 'deleteSecret' | 'listSettings' | 'putSetting' | 'deleteSetting'
>

export interface AccountValueDependencies {
  accountValues: AccountValues
  workflows: WorkflowRegistry
}

export function accountValueOperations({ accountValues, workflows }: AccountValueDependencies): Operations {
  const declaringOf = (accountId: string, kind: ValueKind) => {
    const declaring = findDeclaring(workflows.current(accountId), kind)
    return (value: AccountValue) => toResponse(value, declaring)
  }
  return {
    async listSecrets({ principal: { accountId }, query }) {
      const page = await accountValues.list(accountId, 'secret', query)
      if (!page) return wrongCursor
      const data = page.values.map(declaringOf(accountId, 'secret'))
      return { status: 200, body: { data, nextCursor: page.nextCursor } }
    },

    async putSecret({ principal, path, body }) {
      const { accountId } = principal
      const stored = await accountValues.put(accountId, 'secret', path.name, body.value, principal)
      if (!stored) return tooMany('secrets')
      return { status: 200, body: declaringOf(accountId, 'secret')(stored) }
    },

    async deleteSecret({ principal, path }) {
      const isDeleted = await accountValues.delete(principal.accountId, 'secret', path.name, principal)
      return isDeleted ? { status: 204 } : notFound('secret')
    },

    async listSettings({ principal: { accountId }, query }) {
      const page = await accountValues.list(accountId, 'setting', query)
      if (!page) return wrongCursor
      const describe = declaringOf(accountId, 'setting')
      const data = page.values.map((each) => ({ ...describe(each), value: each.value }))
      return { status: 200, body: { data, nextCursor: page.nextCursor } }
    },

    async putSetting({ principal, path, body }) {
      const { accountId } = principal
      const stored = await accountValues.put(accountId, 'setting', path.name, body.value, principal)
      if (!stored) return tooMany('settings')
      return { status: 200, body: { ...declaringOf(accountId, 'setting')(stored), value: stored.value } }
    },

    async deleteSetting({ principal, path }) {
      const isDeleted = await accountValues.delete(principal.accountId, 'setting', path.name, principal)
      return isDeleted ? { status: 204 } : notFound('setting')
    },
  }
}

function tooMany<Kind extends 'secrets' | 'settings'>(kind: Kind) {
  const detail = `This account has ${valuesMax} ${kind}. Delete one to store another. Nothing was stored.`
  return { status: 409 as const, problem: { kind: `too-many-${kind}` as const, detail } }
}

function toResponse(
  { name, version, updatedAt, updatedBy }: AccountValue,
  declaring: ReadonlyMap<string, string[]>,
): components['schemas']['Secret'] {
  return { name, version, updatedAt: toTimestamp(updatedAt), updatedBy, workflowIds: declaring.get(name) ?? [] }
}
