/** What is stored encrypted of a browser context. */
import { encryptedColumn } from '../../storage/encrypted-columns.ts'
import { versionAad } from './context-versions.ts'

export const encryptedInBrowserContexts = [
  encryptedColumn({
    table: 'browser_context_versions',
    key: ['id'],
    column: 'state',
    aadColumns: {
      accountId: '(SELECT account_id FROM browser_contexts WHERE browser_contexts.id = browser_context_id)',
      contextId: 'browser_context_id',
      versionId: 'id',
    },
    aad: ({ accountId, contextId, versionId }) => versionAad(accountId, contextId, versionId),
  }),
]
