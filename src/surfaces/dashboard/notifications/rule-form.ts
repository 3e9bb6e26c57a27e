/** The form of a notification rule, within the limits of the Execution API. */
import { findValueErrors } from '../../../contract/value-checks.ts'
import type { Channel, NotificationEventType } from '../../../domain/notifications/notification-message.ts'
import { notificationEventTypes } from '../../../domain/notifications/notification-message.ts'
import {
  findChannelErrors,
  findTargetErrors,
  type NotificationOperationsDependencies,
} from '../../../domain/notifications/notification-operations.ts'
import {
  type NewRule,
  type NotificationRule,
  type RuleChange,
  ruleDefaults,
} from '../../../domain/notifications/notification-rules.ts'
import {
  attribute,
  backLink,
  type Html,
  heading,
  html,
  inputField,
  nothing,
  notice,
  selectField,
  toSentence,
} from '../html.ts'
import { channelLabels, eventLabels, rulePath, rulesPath } from './rule-labels.ts'

/** What the user entered, as text. */
export interface RuleForm {
  name: string
  events: readonly string[]
  channel: string
  recipients: string
  url: string
  workflowIds: string
  notStartedSeconds: string
  failurePercent: string
  details: boolean
  answerLinks: boolean
}

export type RuleErrors = Partial<Record<keyof RuleForm, string>>

/** Characters. */
const lengthMax = { name: 100, url: 2048 }

export function newForm(email: string | null, sendsMail: boolean): RuleForm {
  return {
    name: '',
    events: ['run.failed', 'run.timedOut'],
    channel: sendsMail ? 'email' : 'slack',
    recipients: sendsMail ? (email ?? '') : '',
    url: '',
    workflowIds: '',
    notStartedSeconds: `${ruleDefaults.notStartedSeconds}`,
    failurePercent: `${ruleDefaults.failurePercent}`,
    details: true,
    answerLinks: false,
  }
}

export function toForm(rule: NotificationRule): RuleForm {
  const { name, events, channel, recipients, workflowIds, notStartedSeconds, failurePercent, details, answerLinks } =
    rule
  const lists = { recipients: recipients.join(', '), workflowIds: workflowIds.join(', ') }
  const limits = { notStartedSeconds: `${notStartedSeconds}`, failurePercent: `${failurePercent}` }
  return { name, events, channel, url: '', ...lists, ...limits, details, answerLinks }
}

/** @param rule `undefined` for a new one. The channel of a rule does not change. */
export function submittedRule(form: URLSearchParams, rule: NotificationRule | undefined): RuleForm {
  const text = (name: string) => (form.get(name) ?? '').trim()
  return {
    name: text('name'),
    events: form.getAll('event'),
    channel: rule?.channel ?? text('channel'),
    recipients: text('recipients'),
    url: text('url'),
    workflowIds: text('workflowIds'),
    notStartedSeconds: text('notStartedSeconds'),
    failurePercent: text('failurePercent'),
    details: form.get('details') === 'on',
    answerLinks: form.get('answerLinks') === 'on',
  }
}

type Installation = Pick<NotificationOperationsDependencies, 'sendsMail' | 'webhookPrivateAddresses'>

/** Returns what the form says, or the errors by field. */
export function parseRule(
  form: RuleForm,
  rule: NotificationRule | undefined,
  installation: Installation,
  isWorkflow: (id: string) => boolean,
): { errors: RuleErrors } | { rule: NewRule } {
  const isEmail = form.channel === 'email'
  const recipients = toList(form.recipients)
  const workflowIds = toList(form.workflowIds)
  const toNumber = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : Number.NaN)
  const limits = {
    notStartedSeconds: toNumber(form.notStartedSeconds),
    failurePercent: toNumber(form.failurePercent),
  }
  const { name, channel, events } = form
  const entered = {
    name,
    channel,
    events,
    recipients,
    workflowIds,
    ...limits,
    ...(form.url === '' ? {} : { url: form.url }),
  }
  const errors: RuleErrors = {}
  for (const { pointer, detail } of findValueErrors('CreateNotificationRuleRequest', entered)) {
    const [, field = '', index] = pointer.split('/')
    errors[field as keyof RuleForm] ??= describeError(form, field as keyof RuleForm, index, detail)
  }
  const unknown = workflowIds.find((id) => !rule?.workflowIds.includes(id) && !isWorkflow(id))
  if (unknown !== undefined) errors.workflowIds ??= `“${unknown}” is no workflow of this account.`
  // A rule keeps its address if the field is empty.
  const url = form.url === '' ? {} : { url: form.url }
  const members: Pick<RuleChange, 'recipients' | 'url'> = {
    ...(isEmail || recipients.length > 0 ? { recipients } : {}),
    ...url,
  }
  const isNew = rule === undefined
  const ofMembers = errors.channel
    ? []
    : [
        ...findChannelErrors(channel as Channel, members, isNew),
        ...(errors.url ? [] : findTargetErrors(channel as Channel, members, isNew, installation)),
      ]
  for (const { pointer, detail } of ofMembers) errors[pointer.slice(1) as keyof RuleForm] ??= `This ${detail}.`
  if (Object.keys(errors).length > 0) return { errors }
  const chosen = { events: events as NotificationEventType[], channel: channel as Channel }
  // Unchanged, the links stay those of who has turned them on.
  const links = form.answerLinks === (rule?.answerLinks ?? false) ? {} : { answerLinks: form.answerLinks }
  return { rule: { name, ...chosen, ...members, workflowIds, ...limits, details: form.details, ...links } }
}

function describeError(form: RuleForm, field: keyof RuleForm, index: string | undefined, detail: string): string {
  if (field === 'channel') return 'Choose a channel.'
  if (field === 'events') return 'Choose at least one of the events.'
  if (field === 'url') return 'Enter an address that begins with https://, without spaces and without a fragment (#).'
  if (field === 'name') return `Enter a name of at most ${lengthMax.name} characters.`
  if (index === undefined) return toSentence(detail)
  const kind = field === 'recipients' ? 'an email address' : 'a workflow ID'
  return `“${toList(String(form[field]))[Number(index)]}” is not ${kind}.`
}

/** Neither addresses nor workflow IDs contain commas or spaces. */
function toList(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

interface RuleFormPage {
  /** `undefined` for a new rule. */
  rule?: NotificationRule | undefined
  /** The id of a new rule, so that submitting the form twice creates one. */
  id?: string
  form: RuleForm
  errors: RuleErrors
  sendsMail: boolean
  /** Why none can be created. */
  limit?: string | undefined
}

export function renderRuleForm({ rule, id = '', form, errors, sendsMail, limit }: RuleFormPage): Html {
  const back = rule ? rulePath(rule) : rulesPath
  const title = rule ? 'Edit notification rule' : 'Create notification rule'
  const number = (name: 'notStartedSeconds' | 'failurePercent', label: string, hint: string) =>
    inputField({ name, label, hint, value: form[name], error: errors[name], required: true, inputmode: 'numeric' })
  const tick = (name: 'details' | 'answerLinks', label: string, hint: string) =>
    html`<label class="check"><input type="checkbox" name="${name}" ${attribute('checked', form[name])} /> ${label}<br /><small>${hint}</small></label>`
  return html`${backLink(back, rule ? rule.name : 'Notifications')} ${heading(title)}
    ${limit ? notice('warning', limit) : nothing}
    <form method="post" class="card">
      ${rule ? nothing : html`<input type="hidden" name="id" value="${id}" />`}
      ${inputField({ name: 'name', label: 'Name', value: form.name, error: errors.name, required: true, maxlength: lengthMax.name, autofocus: true, hint: 'Messages name the rule by it.' })}
      ${renderEventChoice(form, errors.events)}
      ${rule ? nothing : renderChannel(form, errors, sendsMail)}
      ${rule && rule.channel !== 'email' ? nothing : inputField({ name: 'recipients', label: 'Email addresses', value: form.recipients, error: errors.recipients, hint: 'For email: at most 10, separated by commas.' })}
      ${rule?.channel === 'email' ? nothing : inputField({ name: 'url', label: 'Address of the webhook', value: form.url, error: errors.url, maxlength: lengthMax.url, hint: rule ? `Leave it empty to keep the one at ${rule.host}. It is not shown.` : 'For Slack and webhooks. It is stored encrypted, and not shown again.' })}
      ${inputField({ name: 'workflowIds', label: 'Workflow IDs', value: form.workflowIds, error: errors.workflowIds, hint: 'Only events of these workflows, separated by commas. Leave empty for all.' })}
      ${number('notStartedSeconds', 'Seconds until a run should have started', 'For “Run does not start”.')}
      ${number('failurePercent', 'Failure rate in percent', 'For “Workflow fails often”: of the runs of an hour.')}
      ${tick('details', 'Say what happened', 'Errors, steps and key figures of runs, and questions of waits. Untick it for data that must not leave this service.')}
      ${tick('answerLinks', 'Let readers answer', 'Messages that a run waits have a link by which a reader answers once, without an account.')}
      <div class="buttons"><button>${rule ? 'Save changes' : 'Create notification rule'}</button><a href="${back}">Cancel</a></div>
    </form>`
}

function renderChannel({ channel }: RuleForm, errors: RuleErrors, sendsMail: boolean): Html {
  const options = Object.entries(channelLabels)
    .filter(([value]) => value !== 'email' || sendsMail)
    .map(([value, title]) => ({ value, title }))
  const hint = sendsMail ? undefined : 'Email needs a mail server, which the operator of this service has not set.'
  return selectField({ name: 'channel', label: 'Channel', value: channel, options, hint, error: errors.channel })
}

function renderEventChoice({ events }: RuleForm, error: string | undefined): Html {
  const boxes = notificationEventTypes.map(
    (type) =>
      html`<label><input type="checkbox" name="event" value="${type}" ${attribute('checked', events.includes(type))} />${eventLabels[type]}</label>`,
  )
  return html`<fieldset ${error ? html`aria-describedby="events-error"` : nothing}>
    <legend>Events</legend>
    <div class="choices">${boxes}</div>
    ${error ? html`<small id="events-error" class="error">${error}</small>` : nothing}
  </fieldset>`
}
