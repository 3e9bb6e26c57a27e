/** The form of a notification rule, within the limits of the Execution API. */
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
import { type Document, resolve } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { attribute, backLink, type Html, heading, html, inputField, nothing, notice, selectField } from '../html.ts'
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

interface TextSchema {
  pattern: string
  maxLength: number
}

const document = executionContract.document as Document
const schema = <T>(name: string): T => resolve(document, { $ref: `#/components/schemas/${name}` })
const texts = {
  name: schema<TextSchema>('NotificationRuleName'),
  url: schema<TextSchema>('WebhookUrl'),
  recipients: schema<TextSchema>('EmailAddress'),
  workflowIds: schema<TextSchema>('WorkflowId'),
}
const listMax = {
  recipients: schema<{ maxItems: number }>('NotificationRecipients').maxItems,
  workflowIds: schema<{ maxItems: number }>('NotificationWorkflowIds').maxItems,
}
const numbers = {
  notStartedSeconds: schema<{ minimum: number; maximum: number }>('NotStartedSeconds'),
  failurePercent: schema<{ minimum: number; maximum: number }>('FailurePercent'),
}

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
  const events = notificationEventTypes.filter((type) => form.events.includes(type))
  const errors: RuleErrors = { ...findTextErrors(form, recipients, workflowIds) }
  if (!Object.hasOwn(channelLabels, form.channel)) errors.channel = 'Choose a channel.'
  const isUnknown = (each: string) => !notificationEventTypes.includes(each as NotificationEventType)
  if (events.length === 0 || form.events.some(isUnknown)) errors.events = 'Choose at least one of the events.'
  const unknown = workflowIds.find((id) => !rule?.workflowIds.includes(id) && !isWorkflow(id))
  if (unknown !== undefined) errors.workflowIds ??= `“${unknown}” is no workflow of this account.`
  const channel = form.channel as Channel
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
        ...findChannelErrors(channel, members, isNew),
        ...(errors.url ? [] : findTargetErrors(channel, members, isNew, installation)),
      ]
  for (const { pointer, detail } of ofMembers) errors[pointer.slice(1) as keyof RuleForm] ??= `This ${detail}.`
  if (Object.keys(errors).length > 0) return { errors }
  const limits = { notStartedSeconds: Number(form.notStartedSeconds), failurePercent: Number(form.failurePercent) }
  const { name, details } = form
  // Unchanged, the links stay those of who has turned them on.
  const links = form.answerLinks === (rule?.answerLinks ?? false) ? {} : { answerLinks: form.answerLinks }
  return { rule: { name, events, channel, ...members, workflowIds, ...limits, details, ...links } }
}

function findTextErrors(
  { name, url, notStartedSeconds, failurePercent }: RuleForm,
  recipients: readonly string[],
  workflowIds: readonly string[],
): RuleErrors {
  const fits = ({ pattern, maxLength }: TextSchema, text: string) =>
    text.length <= maxLength && new RegExp(pattern, 'u').test(text)
  const errors: RuleErrors = {}
  if (name === '' || !fits(texts.name, name))
    errors.name = `Enter a name of at most ${texts.name.maxLength} characters.`
  if (url !== '' && !fits(texts.url, url))
    errors.url = 'Enter an address that begins with https://, without spaces and without a fragment (#).'
  for (const [field, values] of Object.entries({ recipients, workflowIds })) {
    const key = field as keyof typeof listMax
    const wrong = values.find((each) => !fits(texts[key], each))
    const kind = key === 'recipients' ? 'an email address' : 'a workflow ID'
    if (wrong !== undefined) errors[key] = `“${wrong}” is not ${kind}.`
    if (values.length > listMax[key]) errors[key] = `Enter at most ${listMax[key]}.`
  }
  for (const [field, text] of Object.entries({ notStartedSeconds, failurePercent })) {
    const key = field as keyof typeof numbers
    const { minimum, maximum } = numbers[key]
    const isNumber = /^\d{1,9}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum
    if (!isNumber) errors[key] = `Enter a whole number from ${minimum} to ${maximum}.`
  }
  return errors
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
  const number = (name: keyof typeof numbers, label: string, hint: string) =>
    inputField({ name, label, hint, value: form[name], error: errors[name], required: true, inputmode: 'numeric' })
  const tick = (name: 'details' | 'answerLinks', label: string, hint: string) =>
    html`<label class="check"><input type="checkbox" name="${name}" ${attribute('checked', form[name])} /> ${label}<br /><small>${hint}</small></label>`
  return html`${backLink(back, rule ? rule.name : 'Notifications')} ${heading(title)}
    ${limit ? notice('warning', limit) : nothing}
    <form method="post" class="card">
      ${rule ? nothing : html`<input type="hidden" name="id" value="${id}" />`}
      ${inputField({ name: 'name', label: 'Name', value: form.name, error: errors.name, required: true, maxlength: texts.name.maxLength, autofocus: true, hint: 'Messages name the rule by it.' })}
      ${renderEventChoice(form, errors.events)}
      ${rule ? nothing : renderChannel(form, errors, sendsMail)}
      ${rule && rule.channel !== 'email' ? nothing : inputField({ name: 'recipients', label: 'Email addresses', value: form.recipients, error: errors.recipients, hint: 'For email: at most 10, separated by commas.' })}
      ${rule?.channel === 'email' ? nothing : inputField({ name: 'url', label: 'Address of the webhook', value: form.url, error: errors.url, maxlength: texts.url.maxLength, hint: rule ? `Leave it empty to keep the one at ${rule.host}. It is not shown.` : 'For Slack and webhooks. It is stored encrypted, and not shown again.' })}
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
