/**
 * Logs refused sign-ins, API keys and requests with the client's address, and audits those that concern an account. The
 * first refusal of a kind is recorded at once, the others of its window with one count, so that an attacker fills
 * neither the log nor the audit log.
 */
import type { Logger } from 'pino'
import { ignoreUnavailable, type Store, type Transaction } from '../../storage/store.ts'
import { type Action, type NewEntry, recordAudit } from './audit-log.ts'

export type RefusalMessage =
  | 'sign-in refused'
  | 'current password refused'
  | 'sign-in code refused'
  | 'sign-in link refused'
  | 'sign-in by the identity provider refused'
  | 'sign-in rate limited'
  | 'API key refused'
  | 'API key rate limited'

export interface Refusal {
  message: RefusalMessage
  /** The address, which the user agent may follow. */
  client: string
  /** Omitted when the refusal concerns no account, such as a sign-in with an unknown e-mail address. */
  audit?: { action: Action; accountId: string; subject: Subject } | undefined
}

/** The user or API key. Its name is read only when an entry is written. */
export interface Subject {
  id: string
  name: string | (() => Promise<string>)
}

interface PendingEntry {
  accountId: string
  entry: Omit<NewEntry, 'subject'>
  subject: Subject
}

/** Lines are counted by message and address, entries by action and user or key. */
interface Window {
  endsAt: number
  count: number
  /** The first clients of these refusals. */
  clients: Set<string>
  record(count: number, clients: readonly string[]): void
}

const logMilliseconds = 60_000
const auditMilliseconds = 60 * 60_000

/** Lines per window in this process; further addresses share one line per message. */
const logWindowsMax = 100
/** Entries of existing users and keys only, so that this bound protects memory alone. */
const auditWindowsMax = 10_000
const clientsMax = 5

const flushMilliseconds = 5000

export class Refusals {
  readonly #store: Store
  readonly #log: Logger
  readonly #now: () => number
  readonly #logWindows = new Map<string, Window>()
  readonly #auditWindows = new Map<string, Window>()
  #entries: PendingEntry[] = []
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, log: Logger, now: () => number = Date.now) {
    this.#store = store
    this.#log = log
    this.#now = now
    const flush = () => this.flush().catch((err: unknown) => log.error({ err }, 'refusals could not be audited'))
    this.#timer = setInterval(flush, flushMilliseconds).unref()
  }

  record({ message, client, audit }: Refusal): void {
    const [address = ''] = client.split(' ', 1)
    const known = audit && { accountId: audit.accountId, subjectId: audit.subject.id }
    const isFull = this.#logWindows.size >= logWindowsMax && !this.#logWindows.has(`${message} ${address}`)
    const key = isFull ? message : `${message} ${address}`
    this.#count(this.#logWindows, key, client, logMilliseconds, (count, clients) =>
      this.#log.warn({ ...(isFull ? { clients } : { address }), ...known, count }, message),
    )
    if (!audit || this.#auditWindows.size >= auditWindowsMax) return
    const { action, accountId, subject } = audit
    this.#count(this.#auditWindows, `${action} ${subject.id}`, client, auditMilliseconds, (count, clients) => {
      const by = { kind: 'caller', id: null, name: clients.join(', ') } as const
      const details = count > 1 ? { count } : {}
      this.#entries.push({ accountId, subject, entry: { action, by, details, at: this.#now() } })
    })
  }

  #count(windows: Map<string, Window>, key: string, client: string, length: number, record: Window['record']): void {
    const window = windows.get(key)
    if (!window) {
      windows.set(key, { endsAt: this.#now() + length, count: 0, clients: new Set(), record })
      return record(1, [client])
    }
    window.count += 1
    if (window.clients.size < clientsMax) window.clients.add(client)
  }

  /** Records the counts of windows that have ended, and writes audit entries outside of requests. */
  async flush(): Promise<void> {
    for (const windows of [this.#logWindows, this.#auditWindows]) this.#endWindows(windows, this.#now())
    const entries = this.#entries
    if (entries.length === 0) return
    this.#entries = []
    await this.#write(entries).catch((error: unknown) => {
      this.#entries = [...entries, ...this.#entries].slice(0, auditWindowsMax)
      ignoreUnavailable(error)
    })
  }

  async #write(entries: readonly PendingEntry[]): Promise<void> {
    const findName = async ({ name }: Subject) => (typeof name === 'string' ? name : name())
    const names = await Promise.all(entries.map(({ subject }) => findName(subject)))
    await this.#store.write(async (tx) => {
      const accounts = await this.#findAccounts(tx, entries)
      for (const [index, { accountId, entry, subject }] of entries.entries()) {
        if (!accounts.has(accountId)) continue
        await recordAudit(tx, accountId, { ...entry, subject: { id: subject.id, name: names[index] ?? '' } })
      }
    })
  }

  /** The accounts of the entries that exist: a key of a deleted account may still be used. */
  async #findAccounts({ query }: Transaction, entries: readonly PendingEntry[]): Promise<Set<string>> {
    const ids = [...new Set(entries.map(({ accountId }) => accountId))]
    const rows = await query.selectFrom('accounts').select('id').where('id', 'in', ids).execute()
    return new Set(rows.map(({ id }) => id))
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const windows of [this.#logWindows, this.#auditWindows]) this.#endWindows(windows, Number.POSITIVE_INFINITY)
    await this.flush()
  }

  #endWindows(windows: Map<string, Window>, until: number): void {
    for (const [key, { endsAt, count, clients, record }] of windows) {
      if (endsAt > until) continue
      windows.delete(key)
      if (count > 0) record(count, [...clients])
    }
  }
}
