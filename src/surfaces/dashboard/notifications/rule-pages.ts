/** Settings, Notifications: the rules of the account with their messages. */
import { setTimeout as delay } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import { type NotificationRule, rulesMax } from '../../../domain/notifications/notification-rules.ts'
import { parseId } from '../../../storage/statement-values.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { backLink, copyable, emptyState, facts, type Html, heading, html, nothing, notice, table } from '../html.ts'
import { settingsPage } from '../layout.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { deliveryBadge } from '../webhooks/webhook-labels.ts'
import {
  newForm,
  parseRule,
  type RuleErrors,
  type RuleForm,
  renderRuleForm,
  submittedRule,
  toForm,
} from './rule-form.ts'
import { channelLabels, describeTarget, eventLabels, ruleBadge, rulePath, rulesPath } from './rule-labels.ts'

export const listRules: PageHandler = async (request, { notificationRules, sendsMail }) => {
  const page = await notificationRules.list(request.account.id, { limit: rulesMax })
  const rules = page?.rules ?? []
  const message = doneMessages.get(request.query.get('done') ?? '')
  const mail = sendsMail ? nothing : html` Email needs a mail server, which the operator of this service has not set.`
  const mayCreate = may(request.user, 'POST /settings/notifications/new')
  const button = mayCreate ? createButton : nothing
  const create = rules.length >= rulesMax ? nothing : html`<p>${button}</p>`
  const content = html`${message ? notice('good', message) : nothing}
    <p class="muted">
      Messages about events that need a person. ${rules.length} of ${rulesMax} rules in use.${mail}
      <a href="/docs/notifications.html">Notifications</a>
    </p>
    <div id="rules" data-live="/runs/changes">${rules.length === 0 ? noRules(button) : renderRules(rules)}</div>
    ${rules.length === 0 ? nothing : create}`
  return settingsPage(request, rulesPath, content)
}

const doneMessages = new Map([
  ['deleted', 'Notification rule deleted, with its messages.'],
  ['repeated', 'This rule was already created.'],
])

const createButton = html`<a class="button" href="${rulesPath}/new">Create notification rule</a>`

const noRules = (button: Html | '') =>
  emptyState(
    'No notification rules',
    html`<p>A rule sends a message when a run fails, does not start or waits for a person, when a workflow fails often, or when
      a webhook endpoint or a schedule stops.</p>
    <p>Events of ten minutes are sent together.</p>
    <p>${button}</p>`,
  )

function renderRules(rules: readonly NotificationRule[]): Html {
  const rows = rules.map((rule) => [
    html`<strong><a href="${rulePath(rule)}">${rule.name}</a></strong>`,
    html`<div class="stack">${describeEvents(rule)} <small>${rule.workflowIds.join(', ')}</small></div>`,
    describeTarget(rule),
    ruleBadge(rule),
    rule.lastMessage
      ? html`<div class="stack">${deliveryBadge(rule.lastMessage)} <small>${time(rule.lastMessage.created_at)}</small></div>`
      : html`<span class="muted">none</span>`,
  ])
  return table(['Name', 'Events', 'To', 'Status', 'Last message'], rows, 'Notification rules, newest first')
}

function describeEvents({ events }: NotificationRule): string {
  return events.map((event) => eventLabels[event]).join(', ')
}

const isWorkflowOf = ({ workflows }: Dependencies, accountId: string) => {
  const current = workflows.current(accountId)
  return (id: string) => current.get(id) !== undefined
}

const tooMany = `This account has ${rulesMax} notification rules. Delete one to create another.`

export const showNewRule: PageHandler = async ({ account, user }, deps) => {
  const page = await deps.notificationRules.list(account.id, { limit: rulesMax })
  const isFull = (page?.rules.length ?? 0) >= rulesMax
  return newRulePage(deps, uuid(), newForm(user.email, deps.sendsMail), {}, isFull ? tooMany : undefined)
}

export const createRule: PageHandler = async ({ account, actor, form: fields }, deps) => {
  const form = submittedRule(fields, undefined)
  // Other versions of UUIDs are not found again.
  const id = parseId(formId(fields)) ?? uuid()
  const parsed = parseRule(form, undefined, deps, isWorkflowOf(deps, account.id))
  if ('errors' in parsed) return newRulePage(deps, id, form, parsed.errors, undefined, 400)
  const created = await deps.notificationRules.create(account.id, parsed.rule, actor, id)
  if (created === 'repeated') return { location: `${rulesPath}?done=repeated` }
  if (!created) return newRulePage(deps, id, form, {}, tooMany, 409)
  const { rule, secret } = created
  if (secret === null) return { location: `${rulePath(rule)}?done=created` }
  return settingsTab('Notification rule created', renderSecret(rule, secret))
}

function newRulePage(
  { sendsMail }: Dependencies,
  id: string,
  form: RuleForm,
  errors: RuleErrors,
  limit?: string,
  status = 200,
): Page {
  return settingsTab('Create notification rule', renderRuleForm({ id, form, errors, sendsMail, limit }), status)
}

/** The only page that contains the secret. */
function renderSecret(rule: NotificationRule, secret: string): Html {
  return html`${backLink(rulePath(rule), rule.name)} ${heading('Save the secret of the rule')}
    ${notice('warning', html`<strong>Copy this secret now.</strong> You won’t be able to see it again.`)}
    <section class="card">
      <h2>Secret</h2>
      ${copyable('secret-value', secret, { once: true, label: 'Copy secret' })}
      <p>Your receiver verifies with it that a request comes from this service:
        <a href="/docs/webhooks.html">how to verify requests</a>.</p>
    </section>
    <p><a class="button secondary" href="${rulePath(rule)}">Done</a></p>`
}

export const showRuleChange: PageHandler = async (request, deps) => {
  const rule = await findRule(request, deps)
  const { sendsMail } = deps
  return settingsTab('Edit notification rule', renderRuleForm({ rule, form: toForm(rule), errors: {}, sendsMail }))
}

export const changeRule: PageHandler = async (request, deps) => {
  const { account, actor } = request
  const rule = await findRule(request, deps)
  const form = submittedRule(request.form, rule)
  const parsed = parseRule(form, rule, deps, isWorkflowOf(deps, account.id))
  if ('errors' in parsed) {
    const body = renderRuleForm({ rule, form, errors: parsed.errors, sendsMail: deps.sendsMail })
    return settingsTab('Edit notification rule', body, 400)
  }
  const { channel: _, ...change } = parsed.rule
  orNotFound(await deps.notificationRules.update(account.id, rule.id, change, actor))
  return { location: `${rulePath(rule)}?done=changed` }
}

export const setRuleEnabled: PageHandler = async ({ account, params, form, actor }, { notificationRules }) => {
  const enabled = form.get('enabled') === 'true'
  const rule = orNotFound(await notificationRules.update(account.id, params.id ?? '', { enabled }, actor))
  return { location: `${rulePath(rule)}?done=${enabled ? 'enabled' : 'paused'}` }
}

/** How long a page waits for the attempt that it has started, so that it can show the outcome. */
const testWait = { milliseconds: 2000, interval: 50 }

export const testRule: PageHandler = async (request, deps) => {
  const rule = await findRule(request, deps)
  const { account, actor } = request
  const sent = orNotFound(await deps.notificationRules.sendTest(account.id, rule.id, actor))
  const deadline = performance.now() + testWait.milliseconds
  const isPending = ({ status, last_attempt_at }: WebhookDeliveriesTable) =>
    status === 'pending' && last_attempt_at === null
  for (let row: WebhookDeliveriesTable | undefined = sent; row && isPending(row) && performance.now() < deadline; ) {
    await delay(testWait.interval)
    row = (await deps.notificationRules.messages(account.id, rule.id)).find(({ id }) => id === sent.id)
  }
  return { location: `${rulePath(rule)}?done=tested` }
}

export const confirmRuleDeletion: PageHandler = async (request, deps) => {
  const rule = await findRule(request, deps)
  const body = html`${backLink(rulePath(rule), rule.name)} ${heading('Delete this notification rule?')}
    <form method="post" class="card">
      <p>It sends no more messages. Its messages, also pending ones, are erased. <strong>This cannot be undone.</strong></p>
      ${facts([
        ['Name', rule.name],
        ['To', describeTarget(rule)],
      ])}
      <div class="buttons"><button class="danger">Delete notification rule</button><a href="${rulePath(rule)}">Cancel</a></div>
    </form>`
  return settingsTab('Delete notification rule', body)
}

export const deleteRule: PageHandler = async ({ account, params, actor }, { notificationRules }) => {
  orNotFound(await notificationRules.delete(account.id, params.id ?? '', actor))
  return { location: `${rulesPath}?done=deleted` }
}

async function findRule({ account, params }: PageRequest, { notificationRules }: Dependencies) {
  return orNotFound(await notificationRules.get(account.id, params.id ?? ''))
}

function settingsTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'settings', body, status }
}

// The page of a rule.

const ruleMessages = new Map([
  ['created', 'Notification rule created. Send a test message to try it.'],
  ['changed', 'Notification rule changed.'],
  ['paused', 'Notification rule paused. What happens now is not reported later.'],
  ['enabled', 'Notification rule enabled.'],
  ['tested', 'The test message is below. Within a minute, it is sent once.'],
])

export const showRule: PageHandler = async (request, deps) => {
  const rule = await findRule(request, deps)
  const messages = await deps.notificationRules.messages(request.account.id, rule.id)
  const done = ruleMessages.get(request.query.get('done') ?? '')
  const { enabled, events, workflowIds, createdAt } = rule
  const all = html`<span class="muted">all</span>`
  const mayEdit = may(request.user, 'POST /settings/notifications/:id/edit')
  const body = html`${backLink(rulesPath, 'Notifications')} ${done ? notice('good', done) : nothing}
    ${ruleBadge(rule)} ${heading(rule.name, mayEdit ? { actions: renderActions(rule) } : {})}
    ${enabled ? nothing : notice('quiet', 'This rule is paused: it collects no events.')}
    <section class="card">
      ${facts(
        [
          ['Channel', channelLabels[rule.channel]],
          ['To', describeTarget(rule)],
          ['Events', describeEvents(rule)],
          ['Workflows', workflowIds.length === 0 ? all : workflowIds.join(', ')],
          ...(events.includes('run.notStarted')
            ? [['Start within', `${rule.notStartedSeconds} seconds`] as const]
            : []),
          ...(events.includes('workflow.failing') ? [['Failure rate', `${rule.failurePercent} %`] as const] : []),
          ['Created', time(createdAt)],
        ].map(([term, value]) => [term as string, value as Html | string]),
      )}
    </section>
    <h2>Messages</h2>
    <div id="messages" data-live="/runs/changes">${messages.length === 0 ? html`<p class="muted">None yet.</p>` : renderMessages(messages)}</div>`
  return settingsTab(rule.name, body)
}

function renderActions(rule: NotificationRule): Html {
  const path = rulePath(rule)
  const state = html`<form method="post" action="${path}/state"><input type="hidden" name="enabled" value="${rule.enabled ? 'false' : 'true'}" />
    <button class="secondary">${rule.enabled ? 'Pause' : 'Enable'}</button></form>`
  return html`<form method="post" action="${path}/test"><button>Send test message</button></form>
    <a class="button secondary" href="${path}/edit">Edit</a> ${state}
    <a class="button secondary danger" href="${path}/delete">Delete</a>`
}

function renderMessages(messages: readonly WebhookDeliveriesTable[]): Html {
  const rows = messages.map((row) => {
    const { data } = JSON.parse(row.request_body ?? '{}') as { data: { title: string; url: string } }
    const response = row.error ?? row.response_body
    return [
      deliveryBadge(row),
      html`<a href="${pathOf(data.url)}">${data.title}</a>`,
      time(row.created_at),
      `${row.attempts}`,
      row.next_attempt_at === null || row.attempts === 0
        ? html`<span class="muted">–</span>`
        : time(row.next_attempt_at, 'exact'),
      response ? html`<small>${response.slice(0, 200)}</small>` : html`<span class="muted">–</span>`,
    ]
  })
  const columns = ['Status', 'Message', 'Created', { number: 'Attempts' }, 'Next attempt', 'Response or error']
  return table(columns, rows, 'Messages, newest first')
}

/** On this dashboard, whatever address it had when the message was made. */
function pathOf(url: string): string {
  const { pathname, search } = URL.parse(url) ?? { pathname: '/', search: '' }
  return pathname + search
}
