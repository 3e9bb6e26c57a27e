/** Secrets in HashiCorp Vault: version 2 of its key-value engine, over HTTP. */

import { describeConnectionFailure } from '../../storage/error-causes.ts'
import { checkSecret, type SecretStore, SecretStoreError } from './secret-store.ts'

interface Options {
  /** Base URL, such as `https://vault.example.com:8200`. */
  address: string
  /** The token of now: an agent replaces the file of a token. */
  readToken(): Promise<string>
  namespace: string | undefined
  /** Mount and path of the account's secret, such as `secret/shop`. Its keys are the names of secrets. */
  pathOf(accountId: string): string
}

const timeoutMilliseconds = 5000
const responseBytesMax = 4 * 1024 * 1024

/** What the statuses of Vault mean, by its documentation. */
const problems: Record<number, string> = {
  400: 'refuses the request (400): check VAULT_SECRETS_PATH',
  403: 'refuses the token (403)',
  429: 'has too many requests (429)',
  472: 'is a standby for disaster recovery (472)',
  473: 'is a performance standby (473)',
  500: 'has an internal error (500)',
  502: 'cannot reach a server that it needs (502)',
  503: 'is sealed or under maintenance (503)',
}

export class VaultSecrets implements SecretStore {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  async read(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { address, readToken, namespace, pathOf } = this.#options
    const [mount = '', ...segments] = pathOf(accountId).split('/').map(encodeURIComponent)
    const url = `${address.replace(/\/$/, '')}/v1/${mount}/data/${segments.join('/')}`
    const headers = { 'X-Vault-Token': await readToken(), 'X-Vault-Request': 'true' }
    const all = namespace === undefined ? headers : { ...headers, 'X-Vault-Namespace': namespace }
    const { status, text } = await request(url, all)
    if (status === 404) {
      if (hasErrors(text)) throw new SecretStoreError('Vault has no such mount (404): check VAULT_SECRETS_PATH.')
      // Nothing is stored there, or its latest version is deleted.
      return new Map()
    }
    if (status !== 200) throw new SecretStoreError(`Vault ${problems[status] ?? `responds with ${status}`}.`)
    const data = parseData(text)
    const found = names.filter((name) => Object.hasOwn(data, name))
    return new Map(found.map((name) => [name, checkSecret(name, data[name])]))
  }
}

async function request(url: string, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  try {
    // A redirect would send the token elsewhere.
    const options = { headers, redirect: 'manual', signal: AbortSignal.timeout(timeoutMilliseconds) } as const
    const response = await fetch(url, options)
    return { status: response.status, text: await readText(response) }
  } catch (error) {
    if (error instanceof SecretStoreError) throw error
    const isLate = (error as Error).name === 'TimeoutError'
    // Callers read it, so it has no address.
    const failure = describeConnectionFailure('Vault', error) ?? 'Vault cannot be reached.'
    throw new SecretStoreError(isLate ? 'Vault does not respond within 5 s.' : failure)
  }
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > responseBytesMax) throw new SecretStoreError(`Vault responds with more than ${responseBytesMax} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** `{"errors": ["no handler for route …"]}`. For a path of a mount that has nothing, the list is empty. */
function hasErrors(text: string): boolean {
  try {
    return JSON.parse(text)?.errors?.length > 0
  } catch {
    return false
  }
}

/** `{"data": {"data": {name: value}, "metadata": {…}}}` */
function parseData(text: string): Record<string, unknown> {
  try {
    const data: unknown = JSON.parse(text)?.data?.data
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return data as Record<string, unknown>
  } catch {
    // The message of the parser repeats a part of the text.
  }
  throw new SecretStoreError('Vault responds with no secret of a key-value engine of version 2.')
}
