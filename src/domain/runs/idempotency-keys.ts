/** Idempotency keys: which run each of them has made, for as long as it counts. */
import type { Transaction } from '../../storage/store.ts'

export interface IdempotencyKey {
  accountId: string
  key: string
  fingerprint: Uint8Array
  runId: string
  expiresAt: number
}

/** An earlier use whose time is over is forgotten; whoever writes the same key at the same moment is waited for. */
const claimKeySql = `INSERT INTO idempotency_keys (account_id, key, fingerprint, run_id, expires_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, run_id = excluded.run_id,
  expires_at = excluded.expires_at WHERE idempotency_keys.expires_at <= ? RETURNING run_id`
const findKeySql = 'SELECT fingerprint, run_id FROM idempotency_keys WHERE account_id = ? AND key = ?'

/** The key's earlier use, or `undefined` when this is the first one within its time; it is then written down. */
export async function claimIdempotencyKey(
  tx: Transaction,
  { accountId, key, fingerprint, runId, expiresAt }: IdempotencyKey,
  now: number,
): Promise<{ fingerprint: Uint8Array; run_id: string } | undefined> {
  const claimed = await tx.all(claimKeySql, [accountId, key, fingerprint, runId, expiresAt, now])
  if (claimed.length > 0) return undefined
  const [earlier] = await tx.all<{ fingerprint: Uint8Array; run_id: string }>(findKeySql, [accountId, key])
  return earlier
}

const releaseKeySql = 'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND run_id = ?'

/** For a run that is not queued after all: the request may be sent again under its key. */
export async function releaseIdempotencyKey(tx: Transaction, { accountId, key, runId }: IdempotencyKey): Promise<void> {
  await tx.all(releaseKeySql, [accountId, key, runId])
}
