/** Checks what the service depends on: proxies, the store of secrets, the identity provider, mail and the trace collector. */
import { access, constants, stat } from 'node:fs/promises'
import type { Config } from '../../config/config.ts'
import { createSecretStore } from '../../domain/account-values/secret-stores.ts'
import { MailSender } from '../../domain/notifications/send-mail.ts'
import { type Finding, fail, type Opened, ok, shortMessage, warn } from './finding.ts'

const timeoutMilliseconds = 5000

export function checkProxy({ PROXY_HOPS, DASHBOARD_URL, EXECUTION_URL, BROWSER_CONTEXT_URL }: Config): Finding {
  const urls = Object.entries({ DASHBOARD_URL, EXECUTION_URL, BROWSER_CONTEXT_URL })
  const [secure] = urls.find(([, url]) => url?.startsWith('https:')) ?? []
  if (PROXY_HOPS > 0) return ok(`${PROXY_HOPS} in front of the service`)
  if (!secure) return ok('none in front of the service')
  return warn(
    `${secure} is https, which a proxy serves, but PROXY_HOPS is 0: every caller has the address of the proxy`,
    'Set PROXY_HOPS to the number of proxies.',
  )
}

/** A name that stands for an account in a path, where each account has its own. */
const perAccount = /\{account\}.*/

export async function checkSecrets(config: Config): Promise<Finding> {
  const { SECRETS_DIR, SECRETS_FILE, VAULT_ADDR, VAULT_TOKEN_FILE } = config
  if (SECRETS_DIR) return checkPath('SECRETS_DIR', SECRETS_DIR, 'directory')
  if (SECRETS_FILE) return checkPath('SECRETS_FILE', SECRETS_FILE, 'file')
  if (!VAULT_ADDR) return ok('in the store; no other is set')
  if (VAULT_TOKEN_FILE) {
    const found = await checkPath('VAULT_TOKEN_FILE', VAULT_TOKEN_FILE, 'file')
    if (found.status !== 'ok') return found
  }
  return attempt('Vault at VAULT_ADDR gives no secrets', vaultAdvice, async () => {
    await createSecretStore(config)?.read('00000000-0000-0000-0000-000000000000', [])
    return ok('Vault at VAULT_ADDR answers')
  })
}

const vaultAdvice = 'Start Vault, or correct VAULT_ADDR, its token, VAULT_NAMESPACE and VAULT_SECRETS_PATH.'

async function checkPath(name: string, path: string, kind: 'directory' | 'file'): Promise<Finding> {
  const shared = path.replace(perAccount, '') || '/'
  const advice = `Mount it, or set ${name} to a ${kind} that the user of the service can read.`
  return attempt(`${name} (${path}) cannot be read`, advice, async () => {
    await access(shared, constants.R_OK)
    const isDirectory = (await stat(shared)).isDirectory()
    const isRight = isDirectory === (kind === 'directory' || shared !== path)
    return isRight ? ok(`${name} is ${path}`) : fail(`${name} (${path}) is no ${kind}`, advice)
  })
}

export async function checkIdentityProvider(config: Config, opened: Opened): Promise<Finding> {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_SECRET_FILE, OIDC_ACCOUNT } = config
  if (!issuer) return ok('none; people sign in with passwords')
  if (OIDC_CLIENT_SECRET_FILE) {
    const found = await checkPath('OIDC_CLIENT_SECRET_FILE', OIDC_CLIENT_SECRET_FILE, 'file')
    if (found.status !== 'ok') return found
  }
  const advice = 'Correct OIDC_ISSUER, or let this machine reach the provider: people cannot sign in by it.'
  return attempt(`the metadata of OIDC_ISSUER (${issuer}) cannot be read`, advice, async () => {
    const response = await get(`${issuer}/.well-known/openid-configuration`)
    if (response.status !== 200) throw new Error(`the provider responds with ${response.status}`)
    const found = String(((await response.json()) as { issuer?: unknown }).issuer)
    if (found.replace(/\/$/, '') !== issuer) throw new Error(`the provider says that its issuer is ${found}`)
    if (await hasAccount(opened, OIDC_ACCOUNT ?? '')) return ok(`${issuer} answers`)
    return fail(
      `there is no account ${OIDC_ACCOUNT}, which people of the provider would join`,
      'Set OIDC_ACCOUNT to an id that `accounts list` prints.',
    )
  })
}

/** Also if the store cannot be read, which another check reports. */
async function hasAccount(opened: Opened, id: string): Promise<boolean> {
  if ('error' in opened || !opened.inspection) return true
  const { read } = opened.inspection.store
  return read.all('SELECT id FROM accounts WHERE id = ?', [id]).then(
    (rows) => rows.length > 0,
    () => true,
  )
}

export async function checkMail({ SMTP_URL, SMTP_FROM }: Config): Promise<Finding> {
  if (!SMTP_URL) return ok('none; no emails are sent')
  const advice = 'Correct SMTP_URL, or let this machine reach the server: notifications by email are not sent.'
  return attempt('the server of SMTP_URL takes no emails', advice, async () => {
    await new MailSender({ url: SMTP_URL, from: SMTP_FROM }).verify()
    return ok('the server of SMTP_URL takes emails')
  })
}

export async function checkTraces(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config,
  { OTEL_EXPORTER_OTLP_HEADERS = '' }: NodeJS.ProcessEnv,
): Promise<Finding> {
  if (!endpoint) return ok('off')
  const advice = 'Start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT: traces are lost.'
  return attempt('the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes no traces', advice, async () => {
    const pairs = OTEL_EXPORTER_OTLP_HEADERS.split(',').filter(Boolean)
    const headers = pairs.map((pair) =>
      pair
        .split(/=(.*)/s)
        .map((part) => decodeURIComponent(part.trim()))
        .slice(0, 2),
    )
    const response = await get(`${endpoint.replace(/\/$/, '')}/v1/traces`, {
      method: 'POST',
      headers: { ...Object.fromEntries(headers), 'Content-Type': 'application/json' },
      body: '{"resourceSpans":[]}',
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`it responds with ${response.status}`)
    return ok('the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes traces')
  })
}

function get(url: string, options: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...options, redirect: 'manual', signal: AbortSignal.timeout(timeoutMilliseconds) })
}

async function attempt(problem: string, advice: string, act: () => Promise<Finding>): Promise<Finding> {
  try {
    return await act()
  } catch (error) {
    return fail(`${problem} (${shortMessage(error)})`, advice)
  }
}
