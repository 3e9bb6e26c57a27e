/** Row types of browser contexts and their versions. */
import type { Generated, Selectable } from 'kysely'
import type { Json, Milliseconds } from './column-values.ts'

export interface BrowserContextsTable {
  id: string
  account_id: string
  name: string
  created_at: Milliseconds
  updated_at: Milliseconds
  /** Number of the current version; 0 when there is none. */
  version: Generated<number>
  version_id: string | null
  /** The run with the lease, which may write the next version. */
  held_by_run_id: string | null
  /** Fencing token: increases with each lease. A version written with an older one is rejected. */
  fence: Generated<number>
  last_used_at: Milliseconds | null
  /** Set while its versions are being erased. The context is already invisible. */
  deleted_at: Milliseconds | null
}

export type BrowserContextsRow = Selectable<BrowserContextsTable>

export interface BrowserContextVersionsTable {
  id: string
  browser_context_id: string
  /** `null` until the version is published: after it was read back and its writer has finished properly. */
  version: number | null
  /** Size of the storage state as JSON. */
  size_bytes: number
  cookie_domains: Json
  created_at: Milliseconds
  /** The author: exactly one of these three. */
  run_id: string | null
  api_key_id: string | null
  user_id: string | null
  /** Number of the version that this one restores. */
  restored_from: number | null
  /** The storage state, encrypted. */
  state: Uint8Array
}
