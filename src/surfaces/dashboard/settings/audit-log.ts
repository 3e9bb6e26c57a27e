/** The audit log: newest first, by what was done and by whom, also as JSON lines. */
import { once } from 'node:events'
import type { Request, Response } from 'express'
import {
  type Action,
  type AuditEntry,
  type AuditFilter,
  actions,
  isAction,
} from '../../../domain/audit-log/audit-log.ts'
import type { Parts } from '../dependencies.ts'
import { emptyState, moment, selectField, table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { Handler, Visit } from '../visit.ts'
import { settingsPage } from './tabs.ts'

const path = '/settings/audit-log'
const entriesPerPage = 50

export function list({ auditLog, users }: Parts): Handler {
  return async (visit) => {
    const { account, query } = visit
    const filter = filterOf(query)
    const before = query.get('before') ?? undefined
    const [found, names] = await Promise.all([
      auditLog.list(account.id, { ...filter, before, limit: entriesPerPage + 1 }),
      users.names(account.id),
    ])
    const entries = found.slice(0, entriesPerPage)
    const last = found.length > entriesPerPage ? entries.at(-1)?.id : undefined
    const content = html`${filterForm(filter, names)}
      ${entries.length === 0 ? nothingFound(filter) : entryTable(entries)}
      ${last ? html`<p><a href="${path}?${searchOf(filter, { before: last })}">Older entries →</a></p>` : nothing}`
    return settingsPage(visit, path, content)
  }
}

function filterForm(filter: AuditFilter, names: Map<string, string>): Html {
  const any = { value: '', title: 'anything' }
  const actionOptions = [any, ...Object.entries(actions).map(([value, title]) => ({ value, title }))]
  const userOptions = [{ value: '', title: 'anybody' }, ...[...names].map(([value, title]) => ({ value, title }))]
  return html`<form method="get" action="${path}" class="filters">
    ${selectField({ name: 'actor', label: 'Who', value: filter.actorId ?? '', options: userOptions })}
    ${selectField({ name: 'action', label: 'What', value: filter.action ?? '', options: actionOptions })}
    <button class="secondary">Filter</button>
    <a href="${path}.jsonl?${searchOf(filter)}" download>Download as JSON lines</a>
  </form>`
}

function nothingFound(filter: AuditFilter): Html {
  if (!filter.action && !filter.actorId)
    return emptyState('Nothing yet', 'What is done to keys, browser contexts, users and settings is listed here.')
  return emptyState('Nothing fits', html`No entry fits this filter. <a href="${path}">Show all</a>`)
}

function entryTable(entries: AuditEntry[]): Html {
  const rows = entries.map((entry) => [
    moment(entry.at, 'exact'),
    html`<strong>${entry.by.name}</strong>`,
    html`${actions[entry.action] ?? entry.action}${entry.subject ? html` <strong>${entry.subject.name}</strong>` : nothing}`,
    html`<span class="muted">${detailsOf(entry)}</span>`,
  ])
  return table(['When', 'Who', 'What', 'Details'], rows, 'Audit log')
}

function detailsOf({ details }: AuditEntry): string {
  const said = Object.entries(details).filter(([, value]) => value !== null)
  return said.map(([name, value]) => `${detailWords[name] ?? name} ${wordOf(name, value)}`).join(', ')
}

/** What is said before the value of a detail. */
const detailWords: Record<string, string> = {
  how: 'by',
  prefix: 'key',
  role: 'as',
  expiresAt: 'expires',
  lastUsedAt: 'last used',
  replacedBy: 'replaced by',
  restoredFrom: 'from',
  withUser: 'with user',
}

function wordOf(name: string, value: unknown): string {
  if (name.endsWith('At') && typeof value === 'number') return new Date(value).toISOString()
  return Array.isArray(value) ? value.join(' ') : String(value)
}

/** All entries that fit the filter, a JSON object on each line. */
export function download({ auditLog }: Parts) {
  return async (visit: Visit, _request: Request, response: Response): Promise<void> => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    for await (const { at, by, ...entry } of auditLog.all(visit.account.id, filterOf(visit.query))) {
      if (!response.headersSent) head(response)
      const line = JSON.stringify({ at: new Date(at).toISOString(), by, ...entry })
      if (!response.write(`${line}\n`)) await once(response, 'drain', { signal: gone.signal }).catch(() => {})
      if (gone.signal.aborted) return
    }
    if (!response.headersSent) head(response)
    response.end()
  }
}

/** Not before the store has answered: a page that says that it does not is no download. */
function head(response: Response): void {
  // The type after the name, from which Express would guess another.
  response.attachment('audit-log.jsonl').type('application/jsonl')
}

function filterOf(query: URLSearchParams): AuditFilter {
  const action = query.get('action') ?? ''
  return { action: isAction(action) ? action : undefined, actorId: query.get('actor') || undefined }
}

function searchOf({ action, actorId }: AuditFilter, more: Record<string, string> = {}): string {
  const chosen: Record<string, string | Action> = {
    ...(action && { action }),
    ...(actorId && { actor: actorId }),
    ...more,
  }
  return new URLSearchParams(chosen).toString()
}
