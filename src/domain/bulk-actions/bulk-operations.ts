/** The handlers of bulk actions: map requests to domain calls, and their results to responses. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp } from '../problems.ts'
import { idempotencyConflict } from '../queue/queue-problems.ts'
import { findListErrors } from '../run-api/list-request.ts'
import {
  type BulkAction,
  type BulkActionKind,
  type BulkActions,
  type BulkFilter,
  runsPerSecond,
  toListRequest,
  unfinishedMax,
} from './bulk-actions.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'bulkCancelRuns' | 'bulkRerunRuns' | 'getBulkAction'>
type Request = Parameters<Operations['bulkRerunRuns']>[0]

export interface BulkActionDependencies {
  bulkActions: BulkActions
}

export function bulkOperations({ bulkActions }: BulkActionDependencies): Operations {
  return {
    bulkCancelRuns: (request) => create(bulkActions, 'cancel', request, false),

    async bulkRerunRuns(request) {
      if (request.body.browserContextId !== undefined) request.requireScope('browser-contexts:use')
      return create(bulkActions, 'rerun', request, request.hasScope('browser-contexts:use'))
    },

    async getBulkAction({ principal, path }) {
      const action = await bulkActions.get(principal.accountId, path.bulkActionId)
      return action ? { status: 200, body: toResponse(action) } : notFound('bulk action')
    },
  }
}

async function create(
  bulkActions: BulkActions,
  kind: BulkActionKind,
  { principal, body: filter, header }: Pick<Request, 'principal' | 'header'> & { body: BulkFilter },
  usesBrowserContexts: boolean,
) {
  const errors = findListErrors(toListRequest(filter))
  if (errors.length > 0)
    return invalidRequest(errors.map(({ parameter, detail }) => ({ pointer: `/${parameter}`, detail })))
  const { accountId, apiKeyId } = principal
  const idempotencyKey = header['Idempotency-Key']
  const given = { kind, filter, apiKeyId, usesBrowserContexts, idempotencyKey }
  const created = await bulkActions.create(accountId, given, { apiKeyId })
  if (created.kind === 'idempotencyConflict') return idempotencyConflict
  if (created.kind === 'tooManyBulkActions') return tooManyBulkActions
  const headers = {
    Location: `/v1/execution/bulk-actions/${created.action.id}`,
    ...(created.replayed && { 'Idempotent-Replayed': 'true' as const }),
  }
  return { status: 202, headers, body: toResponse(created.action) } as const
}

const tooManyBulkActions = {
  status: 409,
  problem: {
    kind: 'too-many-bulk-actions',
    detail: `This account has ${unfinishedMax} unfinished bulk actions. Try again when one has finished. Nothing was stored.`,
  },
} as const

function toResponse(bulkAction: BulkAction): components['schemas']['BulkAction'] {
  const { filter, createdAt, finishedAt, ...action } = bulkAction
  return {
    ...action,
    runsPerSecond: runsPerSecond(bulkAction),
    filters: filter as components['schemas']['BulkActionFilters'],
    createdAt: toTimestamp(createdAt),
    finishedAt: toTimestamp(finishedAt),
  }
}
