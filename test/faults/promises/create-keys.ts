/** A process that creates API keys as fast as it can, at each message: `node create-keys.ts SETTINGS`. */

import { readConfig } from '../../../src/config/config.ts'
import { ApiKeyError } from '../../../src/domain/api-keys/api-key.ts'
import { ApiKeys } from '../../../src/domain/api-keys/api-keys.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { openStore } from '../../../src/domain/installation.ts'
import { knownScopes } from '../../../src/openapi/served-documents.ts'
import { retryUntilAvailable } from '../../../src/worker/attempt/reporter.ts'

export interface KeysToCreate {
  accountId: string
  userIds: string[]
  count: number
}

export interface CreationResult {
  created: number
  refused: number
}

const store = await openStore(readConfig(JSON.parse(process.argv[2] ?? '{}')))
const apiKeys = new ApiKeys(store, knownScopes())

process.on('message', async ({ accountId, userIds, count }: KeysToCreate) => {
  const creations = Array.from({ length: count }, (_, index) => {
    const userId = userIds[index % userIds.length] ?? ''
    const key = { accountId, userId, name: 'One of many', scopes: null, expiresAt: null }
    // A write that waits too long for the lock fails and is retried.
    return retryUntilAvailable(() => apiKeys.create(key, operator))
  })
  const results = await Promise.allSettled(creations)
  const refusals = results.filter((result) => result.status === 'rejected')
  const other = refusals.find(({ reason }) => !(reason instanceof ApiKeyError))
  if (other) throw other.reason
  process.send?.({ created: count - refusals.length, refused: refusals.length } satisfies CreationResult)
})
process.once('disconnect', () => process.exit())
process.send?.('ready')
