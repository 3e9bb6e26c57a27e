/** The dashboard over plain HTTP: pages, forms, cookies and signed-in users. */
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { vi } from 'vitest'
import { type Service, startService } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { Role } from '../../src/domain/accounts/roles.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { createDomain } from '../../src/domain/create-domain.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { openEncryption, openStore } from '../../src/domain/installation.ts'
import { readRoles } from '../../src/surfaces/roles.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type LogLine, serviceSettings } from './service.ts'
import { type Environment, newStorage, type Storage } from './service-storage.ts'
import { buildOnce } from './snapshots.ts'

const noWorker = fileURLToPath(new URL('../operations/idle-worker.ts', import.meta.url))

/** A service in this process without a worker, and a domain on its store, like that of another process. */
export interface DashboardService extends Service {
  /** The dashboard's actual address, independent of DASHBOARD_URL. */
  url: string
  dataDirectory: string
  /** Environment that selects the same store. */
  settings: Environment
  /** Returns all stored bytes. */
  contents: Storage['contents']
  log: LogLine[]
  domain: Awaited<ReturnType<typeof openDomain>>
}

/** @param settings environment; with the settings of another service, both share its store. */
export async function startDashboardService(settings: Environment = {}): Promise<DashboardService> {
  const newStore = settings.DATA_DIR === undefined ? await newStorage() : undefined
  const storage = newStore?.settings ?? settings
  const config = readConfig({ ...serviceSettings(storage), ...settings })
  const log: LogLine[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const service = await startService(config, logger, noWorker, readRoles([]), { build: buildOnce })
  const domain = await openDomain(storage)
  return {
    ...service,
    url: service.listening.get('dashboard') ?? '',
    dataDirectory: config.DATA_DIR,
    settings: storage,
    contents: newStore?.contents ?? (async () => []),
    log,
    domain,
    async stop() {
      await service.stop()
      await domain.close()
      await newStore?.remove()
    },
  }
}

/**
 * Stops the clock of this process until `restore`, for a service that is started after it. It shows a time in the past, since
 * the ids of this process never have an earlier time than those before them.
 */
export function stopClock({ daysAgo }: { daysAgo: number }) {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - daysAgo * 24 * 3_600_000 })
  return {
    advance: (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds),
    restore: () => void vi.useRealTimers(),
  }
}

async function openDomain(settings: Environment) {
  const config = readConfig(settings)
  const store = await openStore(config)
  const encryption = await openEncryption(config, store)
  const log = pino({ level: 'silent' })
  const workflows = new Deployments(store)
  const domain = createDomain({
    ...{ config, store, encryption, log, artifactRetentionDays: config.ARTIFACT_RETENTION_DAYS },
    workflows,
  })
  return {
    ...domain,
    /** Without workflows until `refresh`. */
    workflows,
    async close() {
      domain.feed.close()
      await domain.apiKeys.close()
      await domain.refusals.close()
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

/** A browser without scripts: stores cookies, and sends `Sec-Fetch-Site` with forms. */
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
    const formHeaders = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/x-www-form-urlencoded' }
    return this.send('POST', path, { headers: { ...formHeaders, ...headers }, body: encodeForm(form) })
  }

  /** Sends a request with the cookies, and no other header than the given ones. */
  async send(method: string, path: string, { headers = {}, body }: Sent = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const all = { ...(cookie !== '' && { Cookie: cookie }), ...this.#headers, ...headers }
    const flat = Object.entries(all).flat()
    const response = await sendRaw(this.#url, { method, path, headers: flat, ...(body !== undefined && { body }) })
    for (const line of setCookieHeaders(response)) {
      const [name = '', value = ''] = (line.split(';')[0] ?? '').split(/=(.*)/s)
      this.cookies.set(name, value)
    }
    return response
  }
}

/** Returns the values of `Set-Cookie`. */
export function setCookieHeaders({ headers }: { headers: Record<string, string | string[] | undefined> }): string[] {
  return [headers['set-cookie'] ?? []].flat()
}

function encodeForm(form: Form): string {
  if (form instanceof URLSearchParams) return form.toString()
  return new URLSearchParams(
    Object.entries(form).flatMap(([name, value]) => [value].flat().map((each) => [name, each] as [string, string])),
  ).toString()
}

/** A user with a session. */
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
  /** Default: a new account. */
  accountId?: string
  role?: Role
  name?: string
  scopesEnabled?: boolean
  /** Headers of every request. */
  headers?: Record<string, string>
}

/** Creates a user with a welcome or invitation link, which also signs them in. */
export async function signIn(
  service: { dashboardUrl: string; url?: string; settings: Environment },
  { accountId, role = 'admin', name = 'Ada', scopesEnabled = false, headers = {} }: PersonOptions = {},
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
    const response = await visitor.post(`/links/${token}`, { name, email, password })
    if (response.status !== 303) throw new Error(`The link did not sign in: ${response.status} ${response.text}`)
    const user = (await domain.users.list(id)).find((each) => each.email === email)
    return { visitor, id: user?.id ?? '', accountId: id, name, email, password }
  } finally {
    await domain.close()
  }
}
