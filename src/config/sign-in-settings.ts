/** Settings of signing in to the dashboard: an OpenID Connect provider, and passwords. */
import { resolve } from 'node:path'
import { ConfigError, optional, text } from './setting-kinds.ts'

/** The roles of members, each of which may do everything that those before it may. */
export const roleNames = ['viewer', 'operator', 'developer', 'admin'] as const

type RoleName = (typeof roleNames)[number]

/** Matches every person whom the provider signs in. */
export const everyGroup = '*'

const rolesAdvice = `a JSON object of roles (${roleNames.join(', ')}) by groups, such as {"platform":"admin","*":"viewer"}`

export const signInSettings = {
  OIDC_ISSUER: optional(
    'Issuer of the OpenID Connect provider by which people [sign in to the dashboard](operating.md#sign-in-with-your-identity-provider), such as `https://login.example.com/realms/main`.',
    (text, name) => {
      const url = URL.parse(text)
      const isLocal = url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
      if (url && (url.protocol === 'https:' || isLocal) && !url.username && !url.search && !url.hash)
        return text.replace(/\/$/, '')
      throw new ConfigError(`${name} is "${text}": set it to the provider's issuer, a URL that starts with https://.`)
    },
  ),
  OIDC_CLIENT_ID: optional('Client ID of the dashboard at the provider.', (text) => text),
  OIDC_CLIENT_SECRET: optional('Client secret of the dashboard at the provider.', (text) => text),
  OIDC_CLIENT_SECRET_FILE: optional('File with the client secret, in place of `OIDC_CLIENT_SECRET`.', (text) =>
    resolve(text),
  ),
  OIDC_ACCOUNT: optional(
    'ID of the account that people join when they first sign in by the provider; `accounts list` prints it.',
    (text) => text,
  ),
  OIDC_ROLES: optional(
    `Roles by groups of the provider, as a JSON object, such as \`{"platform":"admin","*":"viewer"}\`; \`*\` is everyone. The highest role counts. People without a role are refused.`,
    readRoleMapping,
  ),
  OIDC_GROUPS_CLAIM: text('Claim with the groups of a person.', 'groups'),
  OIDC_SCOPES: text('Scopes to request from the provider, separated by spaces.', 'openid profile email'),
  OIDC_NAME: text('Name of the provider, which the sign-in page shows.', 'your identity provider'),
  PASSWORD_SIGN_IN: {
    description:
      'Whether people may sign in with passwords, `on` or `off`. With `off`, they need `OIDC_ISSUER`; sign-in links still work.',
    default: 'on',
    read: (text: string, name: string): 'on' | 'off' => {
      if (text === 'on' || text === 'off') return text
      throw new ConfigError(`${name} is "${text}": set it to on or off.`)
    },
  },
}

function readRoleMapping(text: string, name: string): ReadonlyMap<string, RoleName> {
  const refuse = () => new ConfigError(`${name} is invalid: set it to ${rolesAdvice}.`)
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw refuse()
    const entries = Object.entries(parsed).map(([group, given]) => {
      const role = roleNames.find((each) => each === given)
      if (!role) throw refuse()
      return [group, role] as const
    })
    if (entries.length === 0) throw refuse()
    return new Map(entries)
  } catch {
    throw refuse()
  }
}

type SignInConfig = {
  readonly [Name in keyof typeof signInSettings]: ReturnType<(typeof signInSettings)[Name]['read']>
}

/** @throws {ConfigError} for settings that contradict each other, or with which people could not sign in. */
export function requireCompleteSignIn(config: SignInConfig): void {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_CLIENT_SECRET_FILE, OIDC_ACCOUNT, OIDC_ROLES } = config
  if (!OIDC_ISSUER) {
    if (config.PASSWORD_SIGN_IN === 'off')
      throw new ConfigError('PASSWORD_SIGN_IN is off without OIDC_ISSUER: set OIDC_ISSUER, so that people can sign in.')
    const given = { OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_CLIENT_SECRET_FILE, OIDC_ACCOUNT, OIDC_ROLES }
    const [useless] = Object.entries(given).find(([, value]) => value !== undefined) ?? []
    if (useless) throw new ConfigError(`${useless} is set without OIDC_ISSUER: set OIDC_ISSUER, or unset ${useless}.`)
    return
  }
  for (const [name, value] of Object.entries({ OIDC_CLIENT_ID, OIDC_ACCOUNT, OIDC_ROLES })) {
    if (value === undefined) throw new ConfigError(`OIDC_ISSUER is set without ${name}: set ${name}, too.`)
  }
  if (OIDC_CLIENT_SECRET && OIDC_CLIENT_SECRET_FILE)
    throw new ConfigError('OIDC_CLIENT_SECRET and OIDC_CLIENT_SECRET_FILE are both set: unset one of them.')
  if (!OIDC_CLIENT_SECRET && !OIDC_CLIENT_SECRET_FILE)
    throw new ConfigError('OIDC_ISSUER is set without a secret: set OIDC_CLIENT_SECRET or OIDC_CLIENT_SECRET_FILE.')
  if (!config.OIDC_SCOPES.split(' ').includes('openid'))
    throw new ConfigError('OIDC_SCOPES lacks the scope openid: add it.')
}
