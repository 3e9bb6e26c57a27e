/**
 * Stores outside of the service that have secrets of accounts: a directory or a file that an orchestrator mounts, or
 * HashiCorp Vault. Each attempt reads them when it starts.
 */

/** A store that cannot be read now. The message is for callers, and has no value in it. */
export class SecretStoreError extends Error {}

export interface SecretStore {
  /** For operators: where the secrets are. */
  readonly place: string
  /**
   * The secrets of the account that the store has, by name.
   *
   * @param names of `declaredNamePattern`.
   * @throws {SecretStoreError}
   */
  read(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>>
}
