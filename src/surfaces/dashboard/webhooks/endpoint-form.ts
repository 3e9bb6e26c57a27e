/** Templates of the forms of webhook endpoints, and of the page that shows a secret. */

import type { BlockList } from 'node:net'
import { findValueErrors } from '../../../contract/value-checks.ts'
import { findUrlError } from '../../../domain/webhooks/send-webhook.ts'
import {
  type EventType,
  eventTypes,
  type NewEndpoint,
  type WebhookEndpoint,
} from '../../../domain/webhooks/webhook-endpoints.ts'
import { time } from '../format.ts'
import {
  attribute,
  backLink,
  copyable,
  facts,
  type Html,
  heading,
  html,
  inputField,
  labelledField,
  nothing,
  notice,
  selectField,
  toSentence,
} from '../html.ts'
import { endpointPath, shortUrl } from './webhook-labels.ts'

// The form of a webhook endpoint, within the limits of the Execution API.

/** What the user entered, as text. */
export interface EndpointForm {
  url: string
  events: readonly string[]
  workflowIds: string
  tags: string
}

export type EndpointErrors = Partial<Record<keyof EndpointForm, string>>

export const emptyForm: EndpointForm = { url: '', events: eventTypes, workflowIds: '', tags: '' }

export function toForm({ url, events, workflowIds, tags }: WebhookEndpoint): EndpointForm {
  return { url, events, workflowIds: workflowIds.join(', '), tags: tags.join(', ') }
}

export function submittedEndpoint(form: URLSearchParams): EndpointForm {
  const text = (name: string) => (form.get(name) ?? '').trim()
  return { url: text('url'), events: form.getAll('event'), workflowIds: text('workflowIds'), tags: text('tags') }
}

/**
 * Returns what the form says, or the errors by field.
 *
 * @param isWorkflow whether a run of this workflow can end: it is one of the account, or the endpoint names it already.
 */
export function parseEndpoint(
  form: EndpointForm,
  allowed: BlockList | undefined,
  isWorkflow: (id: string) => boolean,
): NewEndpoint | EndpointErrors {
  const { url, events } = form
  const [workflowIds, tags] = [toList(form.workflowIds), toList(form.tags)]
  const errors: EndpointErrors = {}
  for (const { pointer, detail } of findValueErrors('UpdateWebhookEndpointRequest', {
    url,
    events,
    workflowIds,
    tags,
  })) {
    const [, field = '', index] = pointer.split('/')
    errors[field as keyof EndpointForm] ??= describeError(form, field as keyof EndpointForm, index, detail)
  }
  const urlError = errors.url ? undefined : findUrlError(url, allowed)
  if (urlError !== undefined) errors.url = `The URL ${urlError}.`
  const unknown = workflowIds.find((id) => !isWorkflow(id))
  if (unknown !== undefined) errors.workflowIds ??= `“${unknown}” is no workflow of this account.`
  if (Object.keys(errors).length > 0) return errors
  return { url, events: events as EventType[], workflowIds, tags }
}

function describeError(
  form: EndpointForm,
  field: keyof EndpointForm,
  index: string | undefined,
  detail: string,
): string {
  if (field === 'url') return 'Enter an address that begins with https://, without spaces and without a fragment (#).'
  if (field === 'events') return 'Choose at least one of the events.'
  if (index === undefined) return toSentence(detail)
  return `“${toList(form[field])[Number(index)]}” is not a ${field === 'tags' ? 'tag' : 'workflow ID'}.`
}

export function isEndpoint(parsed: NewEndpoint | EndpointErrors): parsed is NewEndpoint {
  return Array.isArray(parsed.events)
}

/** Neither workflow IDs nor tags contain commas or spaces. */
function toList(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

const eventLabels: Record<(typeof eventTypes)[number], string> = {
  'run.succeeded': 'Run succeeded',
  'run.failed': 'Run failed',
  'run.timedOut': 'Run timed out',
  'run.cancelled': 'Run cancelled',
  'run.expired': 'Run expired',
  'run.waiting': 'Run waits for an answer',
  'browserContext.needsSignIn': 'Browser context needs a person to sign in',
}

interface EndpointFormPage {
  /** `undefined` for a new endpoint. */
  endpoint?: WebhookEndpoint | undefined
  /** The id of a new endpoint, so that submitting the form twice creates one. */
  id?: string
  form: EndpointForm
  errors: EndpointErrors
  /** Why none can be created. */
  limit?: string | undefined
}

export function renderEndpointForm({ endpoint, id = '', form, errors, limit }: EndpointFormPage): Html {
  const back = endpoint ? endpointPath(endpoint) : '/webhooks'
  const title = endpoint ? 'Edit webhook endpoint' : 'Create webhook endpoint'
  return html`${backLink(back, endpoint ? shortUrl(endpoint) : 'Webhooks')} ${heading(title)}
    ${limit ? notice('warning', limit) : nothing}
    <form method="post" class="card">
      ${endpoint ? nothing : html`<input type="hidden" name="id" value="${id}" />`}
      ${inputField({ name: 'url', label: 'Address', value: form.url, error: errors.url, required: true, maxlength: 2048, autofocus: true, hint: 'The https URL of your receiver, such as https://example.com/hooks.' })}
      ${renderEventChoice(form, errors.events)}
      ${inputField({ name: 'workflowIds', label: 'Workflow IDs', value: form.workflowIds, error: errors.workflowIds, hint: 'Only runs of these workflows, separated by commas. Leave empty for all.' })}
      ${inputField({ name: 'tags', label: 'Tags', value: form.tags, error: errors.tags, hint: 'Only runs with at least one of these tags, separated by commas. Leave empty for all.' })}
      <div class="buttons"><button>${endpoint ? 'Save changes' : 'Create webhook endpoint'}</button><a href="${back}">Cancel</a></div>
    </form>`
}

function renderEventChoice({ events }: EndpointForm, error: string | undefined): Html {
  const boxes = eventTypes.map(
    (type) =>
      html`<label><input type="checkbox" name="event" value="${type}" ${attribute('checked', events.includes(type))} />${eventLabels[type]}</label>`,
  )
  return html`<fieldset ${error ? html`aria-describedby="events-error"` : nothing}>
    <legend>Events</legend>
    <div class="choices">${boxes}</div>
    ${error ? html`<small id="events-error" class="error">${error}</small>` : nothing}
  </fieldset>`
}

/** The only page that contains the secret. */
export function renderSecret(endpoint: WebhookEndpoint, secret: string): Html {
  const overlap =
    endpoint.previousSecretExpiresAt !== null &&
    html`<p>Until ${time(endpoint.previousSecretExpiresAt, 'exact')}, requests are signed with the previous secret as well.
      Replace it in your receiver before then.</p>`
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))} ${heading('Save the secret of the endpoint')}
    ${notice('warning', html`<strong>Copy this secret now.</strong> You won’t be able to see it again.`)}
    <section class="card">
      <h2>Secret</h2>
      ${copyable('secret-value', secret, { once: true, label: 'Copy secret' })}
      ${overlap || nothing}
      <p>Your receiver verifies with it that a request comes from this service:
        <a href="/docs/webhooks.html">how to verify requests</a>.</p>
    </section>
    <p><a class="button secondary" href="${endpointPath(endpoint)}">Done</a></p>`
}

export function renderSecretRotation(endpoint: WebhookEndpoint): Html {
  const { previousSecretExpiresAt } = endpoint
  const overlaps =
    previousSecretExpiresAt !== null &&
    html`<p><strong>The secret was already replaced.</strong> Until ${time(previousSecretExpiresAt, 'exact')}, requests are
      also signed with the one before. That ends now if you replace it again.</p>`
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))} ${heading('Rotate the secret?')}
    <form method="post" class="card">
      <input type="hidden" name="overlapEnd" value="${previousSecretExpiresAt ?? ''}" />
      <p>You get a new secret. For 24 hours, requests are signed with both secrets, so that your receiver accepts them before
        and after you replace it there.</p>
      ${overlaps || nothing}
      <div class="buttons"><button>Rotate secret</button><a href="${endpointPath(endpoint)}">Cancel</a></div>
    </form>`
}

export function renderEndpointDeletion(endpoint: WebhookEndpoint): Html {
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))} ${heading('Delete this webhook endpoint?')}
    <form method="post" class="card">
      <p>It gets no more events. Its deliveries, also pending ones, are erased. <strong>This cannot be undone.</strong></p>
      ${facts([
        ['Address', html`<code>${endpoint.url}</code>`],
        ['Created', time(endpoint.createdAt)],
      ])}
      <div class="buttons"><button class="danger">Delete webhook endpoint</button><a href="${endpointPath(endpoint)}">Cancel</a></div>
    </form>`
}

export interface RedeliveryForm {
  since: string
  zone: string
  status: string
  error?: string | undefined
}

const statuses = [
  { value: 'failed', title: 'Failed deliveries' },
  { value: '', title: 'Failed and delivered' },
]

export function renderRedelivery(endpoint: WebhookEndpoint, { since, zone, status, error }: RedeliveryForm): Html {
  const hint = html`Time zone: <span id="zone-name">${zone}</span>`
  const sinceField = { name: 'since', label: 'Events since', hint, error }
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))} ${heading('Redeliver events')}
    <form method="post" class="card">
      <p>Events of runs that ended since this time are sent again, oldest first, at most 1,000 at once. Each has the
        <code>webhook-id</code> that it had before.</p>
      ${labelledField(sinceField, (common) => html`<input type="datetime-local" ${common} value="${since}" required />`)}
      <input type="hidden" name="zone" value="${zone}" ${since === '' ? html`data-zone="#zone-name"` : nothing} />
      ${selectField({ name: 'status', label: 'Deliveries', value: status, options: statuses })}
      <div class="buttons"><button>Redeliver</button><a href="${endpointPath(endpoint)}">Cancel</a></div>
    </form>`
}
