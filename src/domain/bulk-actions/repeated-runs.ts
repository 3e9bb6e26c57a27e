/** The new runs of a bulk action that repeats finished ones. */
import type { Encryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import type { BulkActionsTable } from '../../storage/tables/bulk-action-tables.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import type { NewRun } from '../runs/enqueue-batcher.ts'
import { createRun, type QueueRequest, type RefusedRun } from '../runs/new-run.ts'
import { refusedDetails } from '../runs/queue-problems.ts'
import { type PersistContext, Run, secretsAad } from '../runs/run.ts'
import type { Secrets } from '../workflows/secrets.ts'

type ContextLeases = Awaited<ReturnType<typeof findContextLeases>>

/** The browser contexts of the runs that still exist. */
export function prepareReruns(tx: Transaction, accountId: string, rows: readonly RunsTable[]): Promise<ContextLeases> {
  return findContextLeases(tx, accountId, rows)
}

/**
 * The run that repeats a finished one, with its variables and secrets: because the variables do not change, every caller
 * that may queue runs may repeat it. Returns a sentence if the run cannot be repeated.
 */
export function repeatRun(
  { workflows, encryption }: { workflows: WorkflowRegistry; encryption: Encryption },
  { account_id: accountId, api_key_id: apiKeyId, user_id: userId, uses_browser_contexts: may }: BulkActionsTable,
  row: RunsTable,
  contexts: ContextLeases,
): NewRun | string {
  const contextId = row.browser_context_id
  if (contextId !== null && may === 0)
    return 'The run has a browser context, and the API key lacks browser-contexts:use.'
  if (contextId !== null && !contexts.has(contextId)) return 'The account no longer has the browser context of the run.'
  const secrets = readSecrets(encryption, row)
  if (secrets === undefined) return 'The service could not read the secrets of the run.'
  const queuer = { accountId, apiKeyId, userId }
  const request = toQueueRequest(row)
  let created = createRun({ workflows, encryption }, queuer, request, secrets)
  if (created.kind === 'usesNoConcurrencyKey')
    created = createRun({ workflows, encryption }, queuer, { ...request, concurrencyKey: undefined }, secrets)
  if (created.kind !== 'created') return toSentence(created)
  const isHeld = contextId !== null && contexts.get(contextId) !== null && row.persist_context !== 'never'
  return { ...created.run, waits_for_context: isHeld ? 1 : 0 }
}

/** Never throws: a run that cannot be read must not stop the action, nor those of other accounts. */
function readSecrets(encryption: Encryption, { id, account_id, secrets }: RunsTable): Secrets | undefined {
  try {
    return secrets === null ? {} : JSON.parse(encryption.decrypt(secrets, secretsAad(account_id, id)))
  } catch {
    return undefined
  }
}

function toQueueRequest(row: RunsTable): QueueRequest {
  const { id, workflowId, variables, priority, tags, concurrencyKey } = new Run(row, () => undefined, [], [])
  const context = row.browser_context_id
  return {
    ...{ workflowId, variables, priority },
    idempotencyKey: undefined,
    delaySeconds: 0,
    expiresInSeconds: undefined,
    tags: tags.length === 0 ? undefined : tags,
    concurrencyKey: concurrencyKey ?? undefined,
    browserContext:
      context === null ? undefined : { id: context, persist: (row.persist_context ?? 'onSuccess') as PersistContext },
    rerunOf: id,
  }
}

function toSentence(refused: RefusedRun): string {
  switch (refused.kind) {
    case 'noSuchWorkflow':
      return 'The account no longer has the workflow of the run.'
    case 'usesNoBrowser':
      return 'The run has a browser context, but its workflow no longer uses a browser.'
    case 'usesNoConcurrencyKey':
      return refusedDetails.usesNoConcurrencyKey
    case 'variablesInvalid': {
      const [error] = refused.errors
      return `The variables no longer fit the workflow: ${error?.pointer} ${error?.detail}.`
    }
  }
}
