/** Row types of the installation: workers, deployments of workflows, and the check of encryption keys. */
import type { Generated } from 'kysely'
import type { Json, Milliseconds } from './column-values.ts'

export interface WorkersTable {
  id: string
  host: string
  slots: number
  started_at: Milliseconds
  /** When the worker counts as lost, unless a heartbeat extends it. */
  alive_until: Milliseconds
}

export interface DeploymentsTable {
  /** SHA-256 of the content and the account, in hexadecimal. */
  id: string
  /** The account that alone sees its workflows; `null` for all accounts of the installation. */
  account_id: string | null
  created_at: Milliseconds
  /** The definitions, without their code. */
  workflows: Json
  /** Size of the files before compression. */
  size_bytes: number
  /** The files, compressed. */
  files: Uint8Array
}

export interface DeploymentActivationsTable {
  /** Increases in the order of commits. */
  id: Generated<number>
  account_id: string | null
  deployment_id: string
  kind: 'deploy' | 'rollback'
  /** The directory that was deployed, where packages with native code are found; `null` for a rollback. */
  directory: string | null
  at: Milliseconds
}

export interface EncryptionCheckTable {
  /** Always 1: the table has one row. */
  id: number
  /** A known value, encrypted: decrypting it proves possession of the installation's keys. */
  value: Uint8Array
}
