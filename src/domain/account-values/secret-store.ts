/** What a store of secrets outside of the service does. */

/** A store that cannot be read now. The message is for callers, and has no value in it. */
export class SecretStoreError extends Error {
  /** The secret that cannot be read, if others can. */
  readonly secretName: string | undefined

  constructor(message: string, secretName?: string) {
    super(message)
    this.secretName = secretName
  }
}

export interface SecretStore {
  /**
   * The secrets of the account that the store has, by name.
   *
   * @param names of `declaredNamePattern`.
   * @throws {SecretStoreError}
   */
  read(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** Characters of a secret, in a store and here. Shorter ones cannot be masked. */
export const secretLength = { min: 4, max: 16_384 }

/** @throws {SecretStoreError} */
export function checkSecret(name: string, value: unknown): string {
  const { min, max } = secretLength
  if (typeof value === 'string' && value.length >= min && value.length <= max) return value
  throw new SecretStoreError(
    `The secret ${name} in the external store is no text of ${min} to ${max} characters.`,
    name,
  )
}
