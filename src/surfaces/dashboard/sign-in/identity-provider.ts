/** An OpenID Connect provider, as a relying party uses it: authorization code with PKCE, state and nonce. */
import { readFile } from 'node:fs/promises'
import type { Config } from '../../../config/config.ts'
import { everyGroup } from '../../../config/sign-in-settings.ts'
import type { GivenRole, ProviderIdentity } from '../../../domain/accounts/provider-members.ts'
import { roles } from '../../../domain/accounts/roles.ts'
import { DecryptionError, type Encryption } from '../../../storage/encryption.ts'

type Client = typeof import('openid-client')

/** How long a person has at the provider. */
export const flowMinutes = 10

/** Seconds by which the clocks of the provider and of this machine may differ. */
const clockToleranceSeconds = 60

const requestSeconds = 10

/** How long the provider's metadata is used without being read again. */
const metadataMilliseconds = 10 * 60_000

const flowAad = 'provider-sign-in'

/** What the browser keeps, encrypted, while the person is at the provider. */
interface Flow {
  issuer: string
  state: string
  nonce: string
  verifier: string
  /** Path to open after signing in. */
  next: string
  expiresAt: number
}

/**
 * `expired`: no sign-in with this state was begun in this browser, or too long ago. `denied`: the provider refused.
 * `unavailable`: it cannot be reached. `invalid`: its response cannot be trusted, or it refuses this service as a client.
 */
export class ProviderSignInError extends Error {
  readonly reason: 'expired' | 'denied' | 'unavailable' | 'invalid'

  constructor(reason: ProviderSignInError['reason'], cause?: unknown) {
    super(`sign-in by the identity provider failed: ${reason}`, { cause })
    this.reason = reason
  }
}

export interface SignedInPerson {
  identity: ProviderIdentity
  role: GivenRole | undefined
  next: string
}

export class IdentityProvider {
  /** By which members are known: without a slash at its end, with and without which a provider is the same. */
  readonly issuer: string
  readonly name: string
  readonly accountId: string
  readonly #config: Config & { OIDC_ISSUER: string }
  readonly #encryption: Encryption
  #metadata: { value: import('openid-client').ServerMetadata; readAt: number } | undefined

  constructor(config: Config & { OIDC_ISSUER: string }, encryption: Encryption) {
    this.issuer = config.OIDC_ISSUER
    this.name = config.OIDC_NAME
    this.accountId = config.OIDC_ACCOUNT ?? ''
    this.#config = config
    this.#encryption = encryption
  }

  /** Returns the provider's page, and what the browser keeps meanwhile. @throws {ProviderSignInError} */
  async begin(redirectUri: string, next: string): Promise<{ url: URL; flow: string }> {
    const client = await openidClient()
    const configuration = await this.#configure(client)
    const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#config.OIDC_SCOPES,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const flow: Flow = {
      ...{ issuer: this.issuer, state, nonce, verifier, next },
      expiresAt: Date.now() + flowMinutes * 60_000,
    }
    const bytes = this.#encryption.encrypt(JSON.stringify(flow), flowAad)
    return { url, flow: Buffer.from(bytes).toString('base64url') }
  }

  /** Exchanges the code of the callback. @throws {ProviderSignInError} */
  async complete(callback: URL, flowText: string): Promise<SignedInPerson> {
    const flow = this.#readFlow(flowText)
    const client = await openidClient()
    const configuration = await this.#configure(client)
    try {
      const tokens = await client.authorizationCodeGrant(configuration, callback, {
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        pkceCodeVerifier: flow.verifier,
        idTokenExpected: true,
      })
      const token = tokens.claims()
      if (!token) throw new ProviderSignInError('invalid')
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
      const more = hasUserInfo ? await client.fetchUserInfo(configuration, tokens.access_token, token.sub) : {}
      const claims = mergeClaims(token, more)
      // Too many groups for a token: Entra names where they can be read instead. They are not none.
      if (Object.hasOwn(Object(claims._claim_names), this.#config.OIDC_GROUPS_CLAIM))
        throw new ProviderSignInError('invalid', new Error('The groups are not in the token (distributed claims).'))
      return { identity: toIdentity(this.issuer, claims), role: this.#findRole(claims), next: flow.next }
    } catch (error) {
      throw toSignInError(client, error)
    }
  }

  /** The provider's page that signs out there; `undefined` if it has none. @throws {ProviderSignInError} */
  async endSessionUrl(returnTo: string): Promise<URL | undefined> {
    const client = await openidClient()
    const configuration = await this.#configure(client)
    if (!configuration.serverMetadata().end_session_endpoint) return undefined
    return client.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo })
  }

  /** A new object each time, so that the provider's keys are read for each sign-in: it may have rotated them. */
  async #configure(client: Client) {
    const { OIDC_CLIENT_ID = '' } = this.#config
    const secret = await this.#readSecret()
    try {
      const metadata = await this.#readMetadata(client, OIDC_CLIENT_ID)
      const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const authentication = methods.includes('client_secret_basic')
        ? client.ClientSecretBasic(secret)
        : client.ClientSecretPost(secret)
      const clientMetadata = { [client.clockTolerance]: clockToleranceSeconds }
      const configuration = new client.Configuration(metadata, OIDC_CLIENT_ID, clientMetadata, authentication)
      configuration.timeout = requestSeconds
      if (this.issuer.startsWith('http:')) client.allowInsecureRequests(configuration)
      client.enableNonRepudiationChecks(configuration)
      return configuration
    } catch (error) {
      throw toSignInError(client, error)
    }
  }

  async #readMetadata(client: Client, clientId: string) {
    const cached = this.#metadata
    if (cached && performance.now() - cached.readAt < metadataMilliseconds) return cached.value
    const execute = this.issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
    const options = { execute, timeout: requestSeconds }
    const found = await client.discovery(new URL(this.#config.OIDC_ISSUER), clientId, undefined, undefined, options)
    this.#metadata = { value: found.serverMetadata(), readAt: performance.now() }
    return this.#metadata.value
  }

  async #readSecret(): Promise<string> {
    const { OIDC_CLIENT_SECRET, OIDC_CLIENT_SECRET_FILE } = this.#config
    if (OIDC_CLIENT_SECRET !== undefined) return OIDC_CLIENT_SECRET
    try {
      return (await readFile(OIDC_CLIENT_SECRET_FILE ?? '', 'utf8')).trim()
    } catch (error) {
      throw new ProviderSignInError('invalid', error)
    }
  }

  #readFlow(text: string): Flow {
    try {
      const flow: Flow = JSON.parse(this.#encryption.decrypt(Buffer.from(text, 'base64url'), flowAad))
      if (flow.expiresAt > Date.now() && flow.issuer === this.issuer) return flow
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error
    }
    throw new ProviderSignInError('expired')
  }

  /** The highest role of the person's groups. */
  #findRole(claims: Record<string, unknown>): GivenRole | undefined {
    const claimed: unknown[] = [claims[this.#config.OIDC_GROUPS_CLAIM] ?? []].flat()
    // A group of the provider cannot be named like everyone.
    const groups = [
      ...claimed.filter((group) => typeof group === 'string').filter((group) => group !== everyGroup),
      everyGroup,
    ]
    const mapping = this.#config.OIDC_ROLES
    const given = groups.flatMap((group) => {
      const role = mapping?.get(group)
      return role ? [{ role, group }] : []
    })
    return given.toSorted((a, b) => roles.indexOf(b.role) - roles.indexOf(a.role))[0]
  }
}

type Claims = Record<string, unknown>

/** The claims of the ID token, and those of the user info that it lacks. */
export function mergeClaims(token: Claims, more: Claims): Claims {
  // Whether an address is verified counts only for the address beside it.
  const { email, email_verified } = 'email' in token ? token : more
  return { ...more, ...token, email, email_verified }
}

function toIdentity(issuer: string, { sub, name, email, email_verified }: Record<string, unknown>): ProviderIdentity {
  return {
    issuer,
    subject: String(sub),
    name: typeof name === 'string' ? name : undefined,
    email: typeof email === 'string' && email_verified === true ? email : undefined,
  }
}

/** Statuses and errors of the provider that mean that it works, but not now. */
const unavailableErrors = ['temporarily_unavailable', 'server_error']

function toSignInError(client: Client, error: unknown): ProviderSignInError {
  if (error instanceof ProviderSignInError) return error
  const { code, error: name, cause } = error as { code?: string; error?: string; cause?: { cause?: { code?: string } } }
  if (error instanceof client.AuthorizationResponseError) {
    return new ProviderSignInError(unavailableErrors.includes(name ?? '') ? 'unavailable' : 'denied', error)
  }
  // The code was used before, or is too old.
  if (error instanceof client.ResponseBodyError && name === 'invalid_grant')
    return new ProviderSignInError('expired', error)
  if (error instanceof TypeError && error.message === 'fetch failed')
    return new ProviderSignInError('unavailable', error)
  if (code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT' || cause?.cause?.code === 'ECONNREFUSED')
    return new ProviderSignInError('unavailable', error)
  return new ProviderSignInError('invalid', error)
}

/** Loaded at first use. */
function openidClient(): Promise<Client> {
  return import('openid-client')
}
