/** What messages say: the JSON that is stored and that webhooks get, and its texts for Slack and email. */
import type { NotificationEventsTable } from '../../storage/tables/notification-tables.ts'
import { oneLine } from '../one-line.ts'

export type NotificationEventType =
  | 'run.failed'
  | 'run.timedOut'
  | 'run.expired'
  | 'run.waiting'
  | 'run.notStarted'
  | 'workflow.failing'
  | 'webhookEndpoint.disabled'
  | 'schedule.paused'
  | 'browserContext.needsSignIn'

export type Channel = 'email' | 'slack' | 'webhook'

/** The schema `NotificationEvent` of the document. */
export interface NotificationMessage {
  type: 'notification' | 'notification.test'
  timestamp: string
  data: {
    ruleId: string
    ruleName: string
    title: string
    workflowId: string | null
    count: number
    url: string
    events: NotifiedEvent[]
  }
}

export interface NotifiedEvent {
  event: NotificationEventType
  at: string
  runId: string | null
  subject: string | null
  url: string
  /** Added when the message is sent, so that none is stored: a run may be erased in the meantime. */
  run?: RunDetails | null
  wait?: WaitDetails | null
}

/** What happened to a run. Secrets are masked. */
export interface RunDetails {
  /** Of the workflow. */
  title: string | null
  error: { name: string; message: string } | null
  /** The step that failed. */
  step: string | null
  tags: readonly string[]
  attempts: number
  /** From the first start to the end. */
  durationSeconds: number | null
}

/** What a run waits for. */
export interface WaitDetails {
  /** What to decide. */
  title: string | null
  deadline: string | null
  /** Where a reader answers, once, without an account; `null` if the rule has no such links. */
  answerUrl: string | null
}

/** The email to a user who follows a run. */
interface EndedMessage {
  type: 'run.ended'
  timestamp: string
  data: { title: string; runId: string; workflowId: string; status: string; url: string }
}

export type Message = NotificationMessage | EndedMessage

/** Events that one message counts at most. */
export const countedEventsMax = 5000

/** Events that a message names. */
const namedEventsMax = 10

interface Sentence {
  one(workflowId: string, subject: string): string
  many(count: string, workflowId: string): string
}

const ofRuns = (one: string, many = one): Sentence => ({
  one: (workflowId) => `A run of ${workflowId} ${one}`,
  many: (count, workflowId) => `${count} runs of ${workflowId} ${many}`,
})

const sentences: Record<NotificationEventType, Sentence> = {
  'run.failed': ofRuns('failed'),
  'run.timedOut': ofRuns('timed out'),
  'run.expired': ofRuns('expired before it started', 'expired before they started'),
  'run.waiting': ofRuns('waits for an answer', 'wait for an answer'),
  'run.notStarted': ofRuns('has not started for too long', 'have not started for too long'),
  'workflow.failing': {
    one: (workflowId, percent) => `${percent} % of the last hour’s runs of ${workflowId} have failed`,
    many: (count, workflowId) => `${workflowId} exceeded its failure rate ${count} times`,
  },
  'webhookEndpoint.disabled': {
    one: () => 'A webhook endpoint was disabled',
    many: (count) => `${count} webhook endpoints were disabled`,
  },
  'schedule.paused': {
    one: (workflowId) => `A schedule of ${workflowId} was paused`,
    many: (count, workflowId) => `${count} schedules of ${workflowId} were paused`,
  },
  'browserContext.needsSignIn': {
    one: () => 'A browser context needs a sign-in',
    many: (count) => `${count} browser contexts need a sign-in`,
  },
}

export const notificationEventTypes = Object.keys(sentences) as NotificationEventType[]

type EventRow = Pick<NotificationEventsTable, 'event' | 'workflow_id' | 'run_id' | 'subject' | 'created_at'>

interface MessageSource {
  rule: { id: string; name: string }
  workflowId: string
  /** Oldest first; at most `countedEventsMax`. */
  rows: readonly EventRow[]
  link: Link
  at: number
}

/** The address of a page of the dashboard. */
export type Link = (path: string) => string

/** @param environment is named by the address, if the account has several: the dashboard then asks to switch to it. */
export function linksTo(dashboardUrl: string, environment: string | null): Link {
  if (environment === null) return (path) => dashboardUrl + path
  return (path) => `${dashboardUrl}${path}${path.includes('?') ? '&' : '?'}environment=${environment}`
}

export function toMessage({ rule, workflowId, rows, link, at }: MessageSource): NotificationMessage {
  const events = rows.slice(0, namedEventsMax).map((row) => toNotifiedEvent(row, link))
  const [first] = events
  const common =
    workflowId === '' ? (first?.url ?? link('/')) : link(`/runs?workflow=${encodeURIComponent(workflowId)}`)
  return {
    type: 'notification',
    timestamp: new Date(at).toISOString(),
    data: {
      ruleId: rule.id,
      ruleName: rule.name,
      title: describeAll(rows, workflowId),
      workflowId: workflowId === '' ? null : workflowId,
      count: rows.length,
      url: first && rows.length === 1 ? first.url : common,
      events,
    },
  }
}

export function toTestMessage(rule: { id: string; name: string }, link: Link, at: number): NotificationMessage {
  const url = link(`/settings/notifications/${rule.id}`)
  const title = 'This is a test message'
  const data = { ruleId: rule.id, ruleName: rule.name, title, workflowId: null, count: 0, url, events: [] }
  return { type: 'notification.test', timestamp: new Date(at).toISOString(), data }
}

const ends: Record<string, string> = {
  succeeded: 'succeeded',
  failed: 'failed',
  timedOut: 'timed out',
  cancelled: 'was cancelled',
  expired: 'expired before it started',
}

export function toEndedMessage(
  run: { id: string; workflowId: string; status: string; finishedAt: number },
  link: Link,
): EndedMessage {
  const { id, workflowId, status, finishedAt } = run
  const title = `The run of ${workflowId} ${ends[status] ?? status}`
  const url = link(`/runs/${id}`)
  const data = { title, runId: id, workflowId, status, url }
  return { type: 'run.ended', timestamp: new Date(finishedAt).toISOString(), data }
}

function describeAll(rows: readonly EventRow[], workflowId: string): string {
  const [first] = rows
  if (!first) return ''
  if (rows.length === 1) return describe(first)
  const count = rows.length < countedEventsMax ? `${rows.length}` : `${countedEventsMax} or more`
  const isAlike = rows.every(({ event }) => event === first.event)
  const sentence = sentences[first.event as NotificationEventType]
  if (isAlike && sentence) return sentence.many(count, workflowId)
  return `${count} events${workflowId === '' ? '' : ` of ${workflowId}`}`
}

function describe({ event, workflow_id, subject }: Pick<EventRow, 'event' | 'workflow_id' | 'subject'>): string {
  return sentences[event as NotificationEventType]?.one(workflow_id, subject ?? '') ?? event
}

function toNotifiedEvent(row: EventRow, link: Link): NotifiedEvent {
  return {
    event: row.event as NotificationEventType,
    at: new Date(row.created_at).toISOString(),
    runId: row.run_id,
    subject: row.subject,
    url: link(pathOf(row)),
  }
}

function pathOf({ event, workflow_id, run_id, subject }: EventRow): string {
  const id = encodeURIComponent(subject ?? '')
  if (run_id !== null) return event === 'run.waiting' ? `/runs/${run_id}/waits/${id}` : `/runs/${run_id}`
  if (event === 'webhookEndpoint.disabled') return `/webhooks/${id}`
  if (event === 'schedule.paused') return `/schedules/${id}`
  if (event === 'browserContext.needsSignIn') return `/browser-contexts/${id}`
  return `/runs?workflow=${encodeURIComponent(workflow_id)}`
}

// Texts for people.

interface Line {
  text: string
  url: string
  at: string
  details: string[]
  /** Where the reader answers. */
  answerUrl: string | null
}

interface Readable {
  title: string
  /** Precedes the title in the subject of an email. */
  ruleName: string | undefined
  lines: Line[]
  more: string | undefined
  url: string
  reason: string
}

function toReadable({ type, timestamp, data }: Message): Readable {
  if (type === 'run.ended') {
    const lines = [{ text: `Run ${data.runId}`, url: data.url, at: timestamp, details: [], answerUrl: null }]
    return { ...data, ruleName: undefined, lines, more: undefined, reason: 'You follow this run.' }
  }
  const { ruleName, title, count, url, events, workflowId } = data
  const lines = events.map(({ event, at, runId, subject, url, run = null, wait = null }, index) => {
    const text = describe({ event, workflow_id: workflowId ?? '', subject })
    const details = index < detailedEventsMax ? [...describeRun(run), ...describeWait(wait)] : []
    const line = { text: oneLine(runId === null ? text : `${text}: ${runId}`), details: details.map(oneLine) }
    return { ...line, url, at, answerUrl: wait?.answerUrl ?? null }
  })
  const rest = count - events.length
  const more = rest <= 0 ? undefined : `And ${count < countedEventsMax ? rest : `${rest} or more`} others.`
  return { title, ruleName, lines, more, url, reason: `Sent by the notification rule “${ruleName}”.` }
}

/** Texts for people describe the first ones: Discord takes 2,000 characters. */
const detailedEventsMax = 3
const errorLengthMax = 200

function describeRun(run: RunDetails | null): string[] {
  if (!run) return []
  const { title, error, step, tags, attempts, durationSeconds } = run
  const figures = [
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...(durationSeconds === null ? [] : [`${durationSeconds} s`]),
    ...(tags.length > 0 ? [`tags ${tags.join(', ')}`] : []),
  ]
  return [
    ...(title === null ? [] : [title]),
    ...(error ? [`${error.name}: ${shorten(error.message)}${step === null ? '' : ` (step ${step})`}`] : []),
    ...(figures.length > 0 ? [figures.join(' · ')] : []),
  ]
}

function describeWait(wait: WaitDetails | null): string[] {
  if (!wait) return []
  const { title, deadline } = wait
  return [
    ...(title === null ? [] : [shorten(title)]),
    ...(deadline === null ? [] : [`Answer by ${formatTime(deadline)}`]),
  ]
}

function shorten(text: string): string {
  const line = oneLine(text)
  return line.length > errorLengthMax ? `${line.slice(0, errorLengthMax - 1).toWellFormed()}…` : line
}

/** The body for an incoming webhook. Slack replaces what looks like a mention or a link: `&`, `<` and `>` are escaped. */
export function toSlackBody(message: Message): string {
  const { title, lines, more, url, reason } = toReadable(message)
  const items = lines.flatMap(({ text, url, at, details, answerUrl }) => [
    `• <${url}|${escapeSlack(text)}> at ${formatTime(at)}`,
    ...details.map((detail) => `    ${escapeSlack(detail)}`),
    ...(answerUrl === null ? [] : [`    <${answerUrl}|Answer>`]),
  ])
  const texts = [`*<${url}|${escapeSlack(title)}>*`, ...items, ...(more ? [more] : []), `_${escapeSlack(reason)}_`]
  return JSON.stringify({ text: texts.join('\n') })
}

/** Mattermost, Rocket.Chat and Discord find mentions in plain text: a zero-width space behind each @ prevents that. */
function escapeSlack(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('|', '¦')
  return escaped.replaceAll('@', '@\u200b')
}

interface MailContent {
  subject: string
  text: string
  html: string
}

export function toMail(message: Message): MailContent {
  const { title, ruleName, lines, more, url, reason } = toReadable(message)
  const items = lines.map(({ text, url, at, details, answerUrl }) => {
    const answer = answerUrl === null ? [] : [`Answer: ${answerUrl}`]
    return `- ${[text, ...details, formatTime(at), ...answer, url].join('\n  ')}\n`
  })
  const text = [title, '', ...items, ...(more ? [more, ''] : []), `Open the dashboard: ${url}`, '', reason, ''].join(
    '\n',
  )
  const cells = lines.map(
    ({ text, url, at, details, answerUrl }) =>
      `<li><a href="${escapeHtml(url)}">${escapeHtml(text)}</a><br>${details.map((detail) => `${escapeHtml(detail)}<br>`).join('')}${formatTime(at)}${answerUrl === null ? '' : answerButton(answerUrl)}</li>`,
  )
  const html = `<!doctype html><html lang="en"><body style="font-family:sans-serif">
<h1 style="font-size:18px">${escapeHtml(title)}</h1>
<ul>${cells.join('\n')}</ul>${more ? `<p>${escapeHtml(more)}</p>` : ''}
<p><a href="${escapeHtml(url)}">Open the dashboard</a></p>
<p style="color:#666">${escapeHtml(reason)}</p></body></html>`
  // A line break in a header would begin another one. The API refuses control characters of names, too.
  return { subject: oneLine(ruleName === undefined ? title : `[${ruleName}] ${title}`), text, html }
}

function answerButton(url: string): string {
  const style = 'display:inline-block;margin:8px 0;padding:8px 16px;background:#0172ad;color:#fff;text-decoration:none'
  return `<br><a href="${escapeHtml(url)}" style="${style}">Answer</a>`
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replaceAll(/[&<>"']/g, (each) => entities[each] ?? each)
}

function formatTime(at: string): string {
  return `${at.slice(0, 19).replace('T', ' ')} UTC`
}
