/** The dashboard as a browser without scripts sees it: pages and forms, cookies, and users who are signed in. */
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { type Service, startService } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { SignInLinks } from '../../src/domain/accounts/sign-in-links.ts'
import type { Role } from '../../src/domain/accounts/user.ts'
import { Users } from '../../src/domain/accounts/users.ts'
import { ApiKeys } from '../../src/domain/api-keys/api-keys.ts'
import { AuditLog, operator } from '../../src/domain/audit-log/audit-log.ts'
import { BrowserContexts } from '../../src/domain/browser-contexts/browser-contexts.ts'
import { ContextVersions } from '../../src/domain/browser-contexts/context-versions.ts'
import { openEncryption, openStore } from '../../src/domain/installation.ts'
import { RunQueue } from '../../src/domain/runs/run-queue.ts'
import { knownScopes } from '../../src/openapi/served-documents.ts'
import { Cursors } from '../../src/storage/cursors.ts'
import { sendRaw } from '../operations/http.ts'
import { type LogLine, serviceSettings } from './service.ts'
import { type Environment, newStorage, type Storage } from './service-storage.ts'

const noWorker = fileURLToPath(new URL('../operations/no-worker.ts', import.meta.url))

/** A service in this process, without a worker, and what another process of the installation would have of its store. */
export interface DashboardService extends Service {
  /** Where tests reach the dashboard, whatever DASHBOARD_URL says. */
  url: string
  dataDirectory: string
  /** What leads others to the same store. */
  settings: Environment
  /** Every byte that is kept. */
  contents: Storage['contents']
  log: LogLine[]
  domain: Awaited<ReturnType<typeof openDomain>>
}

/** @param settings as in the environment; with those of another one, both serve the same store. */
export async function startDashboardService(settings: Environment = {}): Promise<DashboardService> {
  const own = settings.DATA_DIR === undefined ? await newStorage() : undefined
  const storage = own?.settings ?? settings
  const config = readConfig({ ...serviceSettings(storage), ...settings })
  const log: LogLine[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const service = await startService(config, logger, noWorker)
  const domain = await openDomain(storage)
  return {
    ...service,
    url: service.listening.get('dashboard') ?? '',
    dataDirectory: config.DATA_DIR,
    settings: storage,
    contents: own?.contents ?? (async () => []),
    log,
    domain,
    async stop() {
      await service.stop()
      await domain.close()
      await own?.remove()
    },
  }
}

async function openDomain(settings: Environment) {
  const config = readConfig(settings)
  const store = await openStore(config)
  const encryption = await openEncryption(config, store)
  const apiKeys = new ApiKeys(store, knownScopes())
  return {
    store,
    browserContexts: new BrowserContexts(store, new Cursors(encryption)),
    contextVersions: new ContextVersions(store, encryption, 10),
    /** What a worker has of the runs. */
    queue: new RunQueue(store),
    apiKeys,
    accounts: new Accounts(store),
    users: new Users(store),
    links: new SignInLinks(store),
    auditLog: new AuditLog(store),
    async close() {
      await apiKeys.close()
      await store.close()
    },
  }
}

export type Form = Record<string, string | readonly string[]> | URLSearchParams

export interface Sent {
  headers?: Record<string, string>
  /** Instead of a form. */
  body?: string | Buffer
}

/** Somebody with a browser: keeps cookies, and says of forms that they are the dashboard's own, as browsers do. */
export class Visitor {
  readonly cookies = new Map<string, string>()
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor(url: string, headers: Record<string, string> = {}) {
    this.#url = url
    this.#headers = headers
  }

  get(path: string, headers: Record<string, string> = {}) {
    return this.send('GET', path, { headers: { Accept: 'text/html,*/*', ...headers } })
  }

  post(path: string, form: Form = {}, headers: Record<string, string> = {}) {
    const own = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/x-www-form-urlencoded' }
    return this.send('POST', path, { headers: { ...own, ...headers }, body: encoded(form) })
  }

  /** Sends what is given, with the cookies, and nothing else. */
  async send(method: string, path: string, { headers = {}, body }: Sent = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const all = { ...(cookie !== '' && { Cookie: cookie }), ...this.#headers, ...headers }
    const flat = Object.entries(all).flat()
    const answer = await sendRaw(this.#url, { method, path, headers: flat, ...(body !== undefined && { body }) })
    for (const line of setCookieHeaders(answer)) {
      const [name = '', value = ''] = (line.split(';')[0] ?? '').split(/=(.*)/s)
      this.cookies.set(name, value)
    }
    return answer
  }
}

/** The lines of `Set-Cookie`. */
export function setCookieHeaders({ headers }: { headers: Record<string, string | string[] | undefined> }): string[] {
  return [headers['set-cookie'] ?? []].flat()
}

function encoded(form: Form): string {
  if (form instanceof URLSearchParams) return form.toString()
  return new URLSearchParams(
    Object.entries(form).flatMap(([name, value]) => [value].flat().map((each) => [name, each] as [string, string])),
  ).toString()
}

/** A user who is signed in. */
export interface SignedInUser {
  visitor: Visitor
  id: string
  accountId: string
  name: string
  email: string
  password: string
}

export const password = 'correct horse battery'

interface PersonOptions {
  /** A new account unless one is given. */
  accountId?: string
  role?: Role
  name?: string
  scopesEnabled?: boolean
  /** What their browser sends with every request. */
  headers?: Record<string, string>
}

/** Makes a user as the product does, by a link, which signs them in. */
export async function signIn(
  service: { dashboardUrl: string; url?: string; settings: Environment },
  { accountId, role = 'owner', name = 'Ada', scopesEnabled = false, headers = {} }: PersonOptions = {},
): Promise<SignedInUser> {
  const domain = await openDomain(service.settings)
  try {
    const id = accountId ?? (await domain.accounts.create({ name: 'Test', scopesEnabled })).id
    const invitation = { label: name, role }
    const token = accountId
      ? await domain.links.invite(id, invitation, operator)
      : await domain.links.createWelcomeLink(id)
    const visitor = new Visitor(service.url ?? service.dashboardUrl, headers)
    const email = `${crypto.randomUUID()}@example.com`
    const answer = await visitor.post(`/links/${token}`, { name, email, password })
    if (answer.status !== 303) throw new Error(`The link did not sign in: ${answer.status} ${answer.text}`)
    const user = (await domain.users.list(id)).find((each) => each.email === email)
    return { visitor, id: user?.id ?? '', accountId: id, name, email, password }
  } finally {
    await domain.close()
  }
}

/** What a page says, without its markup. */
export function pageText({ text }: { text: string }): string {
  return unescaped(text.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ')
}

/** The value of the page's input of this name. */
export function inputValue({ text }: { text: string }, name: string): string | undefined {
  const input = text.match(new RegExp(`<input[^>]*\\sname="${name}"[^>]*>`))?.[0]
  const value = input?.match(/\svalue="([^"]*)"/)?.[1]
  return value === undefined ? undefined : unescaped(value)
}

/** What the page says is wrong with the input of this name. */
export function fieldError({ text }: { text: string }, name: string): string | undefined {
  const error = text.match(new RegExp(`<small id="field-${name}-error" class="error">([^<]*)</small>`))?.[1]
  return error === undefined ? undefined : unescaped(error)
}

function unescaped(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" }
  return text.replaceAll(/&(lt|gt|quot|amp|#39);/g, (_, name) => named[name] ?? '')
}
