/** What is stored encrypted of a browser context. */
import { sealedColumn } from '../storage/sealed-columns.ts'
import { versionOwner } from './versions.ts'

export const sealedInBrowserContexts = [
  sealedColumn({
    table: 'browser_context_versions',
    key: ['id'],
    column: 'state',
    ownerParts: {
      accountId: '(SELECT account_id FROM browser_contexts WHERE browser_contexts.id = browser_context_id)',
      contextId: 'browser_context_id',
      versionId: 'id',
    },
    owner: ({ accountId, contextId, versionId }) => versionOwner(accountId, contextId, versionId),
  }),
]
