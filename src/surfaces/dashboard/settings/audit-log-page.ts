/** The audit log: newest first, filtered by actor, action and subject, and as a JSON Lines download. */
import { once } from 'node:events'
import type { Response } from 'express'
import {
  type Action,
  type AuditEntry,
  type AuditFilter,
  actions,
  isAction,
} from '../../../domain/audit-log/audit-log.ts'
import { time } from '../format.ts'
import { emptyState, type Html, html, inputField, nothing, selectField, table } from '../html.ts'
import { settingsPage } from '../layout.ts'
import type { PageHandler, StreamHandler } from '../page-handler.ts'

const path = '/settings/audit-log'

/** The entries of actions of one kind on one subject. */
export function auditLogOf(action: Action, subject: string): string {
  return `${path}?${toQuery({ action, subject })}`
}
const entriesPerPage = 50

export const showAuditLog: PageHandler = async (request, { auditLog, users }) => {
  const { account, query } = request
  const filter = parseFilter(query)
  const before = query.get('before') ?? undefined
  const [found, names] = await Promise.all([
    auditLog.list(account.id, { ...filter, before, limit: entriesPerPage + 1 }),
    users.names(account.id),
  ])
  const entries = found.slice(0, entriesPerPage)
  const last = found.length > entriesPerPage ? entries.at(-1)?.id : undefined
  const content = html`${renderFilter(filter, names)}
    ${entries.length === 0 ? renderEmpty(filter) : renderEntries(entries)}
    ${last ? html`<p><a href="${path}?${toQuery(filter, last)}">Older entries →</a></p>` : nothing}`
  return settingsPage(request, path, content)
}

function renderFilter(filter: AuditFilter, names: Map<string, string>): Html {
  const actors = [{ value: '', title: 'Anyone' }, ...[...names].map(([value, title]) => ({ value, title }))]
  const known = Object.entries(actions).map(([value, title]) => ({ value, title }))
  return html`<form method="get" action="${path}" class="filters">
    ${selectField({ name: 'actor', label: 'Actor', value: filter.actorId ?? '', options: actors })}
    ${selectField({ name: 'action', label: 'Action', value: filter.action ?? '', options: [{ value: '', title: 'Any action' }, ...known] })}
    ${inputField({ name: 'subject', label: 'Name', value: filter.subject ?? '' })}
    <button class="secondary">Filter</button>
    <a href="${path}.jsonl?${toQuery(filter)}" download>Download as JSON Lines</a>
  </form>`
}

function renderEmpty({ action, actorId, subject }: AuditFilter): Html {
  if (action || actorId || subject) {
    return emptyState('No results', html`No entries match these filters. <a href="${path}">Clear filters</a>`)
  }
  return emptyState('No entries yet', 'Changes to API keys, browser contexts, members and settings appear here.')
}

function renderEntries(entries: AuditEntry[]): Html {
  const rows = entries.map(({ at, by, action, subject, details }) => [
    time(at, 'exact'),
    html`<strong>${by.name}</strong>`,
    html`${actions[action] ?? action}${subject ? html` <strong>${subject.name}</strong>` : nothing}`,
    html`<span class="muted">${formatDetails(details)}</span>`,
  ])
  return table(['Time', 'Actor', 'Action', 'Details'], rows, 'Audit log')
}

/** The words before a detail's value. Details without an entry show their own name. */
const detailLabels: Record<string, string> = {
  how: 'with',
  prefix: 'key',
  role: 'as',
  expiresAt: 'expires',
  lastUsedAt: 'last used',
  replacedBy: 'replaced by',
  restoredFrom: 'from version',
  withUser: 'with user',
}

function formatDetails(details: AuditEntry['details']): string {
  const present = Object.entries(details).filter(([, value]) => value !== null)
  return present.map(([name, value]) => `${detailLabels[name] ?? name} ${formatDetail(name, value)}`).join(', ')
}

function formatDetail(name: string, value: unknown): string {
  if (name.endsWith('At') && typeof value === 'number') return new Date(value).toISOString()
  return Array.isArray(value) ? value.join(' ') : String(value)
}

export const downloadAuditLog: StreamHandler = async ({ account, query }, { auditLog }, _request, response) => {
  const aborted = new AbortController()
  response.once('close', () => aborted.abort())
  for await (const { at, by, ...entry } of auditLog.all(account.id, parseFilter(query))) {
    if (!response.headersSent) setDownloadHeaders(response)
    const line = JSON.stringify({ at: new Date(at).toISOString(), by, ...entry })
    if (!response.write(`${line}\n`)) await once(response, 'drain', { signal: aborted.signal }).catch(() => {})
    if (aborted.signal.aborted) return
  }
  if (!response.headersSent) setDownloadHeaders(response)
  response.end()
}

/** Set after the first read: if that fails, the error page must not become a download. */
function setDownloadHeaders(response: Response): void {
  // `type` follows `attachment`, which would guess another type from the name.
  response.attachment('audit-log.jsonl').type('application/jsonl')
}

function parseFilter(query: URLSearchParams): AuditFilter {
  const action = query.get('action') ?? ''
  return {
    action: isAction(action) ? action : undefined,
    actorId: query.get('actor') || undefined,
    subject: query.get('subject')?.trim() || undefined,
  }
}

function toQuery({ action, actorId, subject }: AuditFilter, before?: string): string {
  return new URLSearchParams({
    ...(action && { action }),
    ...(actorId && { actor: actorId }),
    ...(subject && { subject }),
    ...(before && { before }),
  }).toString()
}
