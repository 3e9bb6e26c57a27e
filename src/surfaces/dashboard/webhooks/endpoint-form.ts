/** The form of a webhook endpoint, within the limits of the Execution API. */
import type { BlockList } from 'node:net'
import { findUrlError } from '../../../domain/webhooks/send-webhook.ts'
import {
  type EventType,
  eventTypes,
  type NewEndpoint,
  type WebhookEndpoint,
} from '../../../domain/webhooks/webhook-endpoints.ts'
import { type Document, resolve } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'

/** What the user entered, as text. */
export interface EndpointForm {
  url: string
  events: readonly string[]
  workflowIds: string
  tags: string
}

export type EndpointErrors = Partial<Record<keyof EndpointForm, string>>

interface TextSchema {
  pattern: string
  maxLength: number
}

const document = executionContract.document as Document
const schema = <T>(name: string): T => resolve(document, { $ref: `#/components/schemas/${name}` })
const urlSchema = schema<TextSchema>('WebhookUrl')
const lists = {
  workflowIds: {
    schema: schema<TextSchema>('WorkflowId'),
    max: schema<{ maxItems: number }>('WebhookWorkflowIds').maxItems,
  },
  tags: { schema: schema<TextSchema>('RunTag'), max: schema<{ maxItems: number }>('WebhookTags').maxItems },
}

export const emptyForm: EndpointForm = { url: '', events: eventTypes, workflowIds: '', tags: '' }

export function toForm({ url, events, workflowIds, tags }: WebhookEndpoint): EndpointForm {
  return { url, events, workflowIds: workflowIds.join(', '), tags: tags.join(', ') }
}

export function submittedEndpoint(form: URLSearchParams): EndpointForm {
  const text = (name: string) => (form.get(name) ?? '').trim()
  return { url: text('url'), events: form.getAll('event'), workflowIds: text('workflowIds'), tags: text('tags') }
}

/** Returns what the form says, or the errors by field. */
export function parseEndpoint(form: EndpointForm, allowed: BlockList | undefined): NewEndpoint | EndpointErrors {
  const events = eventTypes.filter((type) => form.events.includes(type))
  const hasUnknown = form.events.some((each) => !eventTypes.includes(each as EventType))
  const errors: EndpointErrors = {}
  const urlError = findFormUrlError(form.url, allowed)
  if (urlError !== undefined) errors.url = urlError
  if (events.length === 0 || hasUnknown) errors.events = 'Choose at least one of the events.'
  for (const name of ['workflowIds', 'tags'] as const) {
    const error = findListError(name, form[name])
    if (error !== undefined) errors[name] = error
  }
  if (Object.keys(errors).length > 0) return errors
  return { url: form.url, events, workflowIds: toList(form.workflowIds), tags: toList(form.tags) }
}

export function isEndpoint(parsed: NewEndpoint | EndpointErrors): parsed is NewEndpoint {
  return Array.isArray(parsed.events)
}

function findFormUrlError(url: string, allowed: BlockList | undefined): string | undefined {
  if (url.length > urlSchema.maxLength) return `Enter at most ${urlSchema.maxLength} characters.`
  if (!new RegExp(urlSchema.pattern, 'u').test(url)) {
    return 'Enter an address that begins with https://, without spaces and without a fragment (#).'
  }
  const error = findUrlError(url, allowed)
  return error && `The URL ${error}.`
}

function findListError(name: keyof typeof lists, text: string): string | undefined {
  const { schema: each, max } = lists[name]
  const values = toList(text)
  if (values.length > max) return `Enter at most ${max}.`
  const wrong = values.find((value) => value.length > each.maxLength || !new RegExp(each.pattern, 'u').test(value))
  return wrong && `“${wrong}” is not a ${name === 'tags' ? 'tag' : 'workflow ID'}.`
}

/** Neither workflow IDs nor tags contain commas or spaces. */
function toList(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}
