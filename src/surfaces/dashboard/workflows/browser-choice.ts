/** The browser context that a run is queued with, and when the run changes it: what stands in the form, and what is sent. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { PersistContext, Run } from '../../../domain/runs/run.ts'
import { type Document, resolve } from '../../../openapi/document.ts'
import { executionContract } from '../../../openapi/served-documents.ts'
import { readOperations } from '../../../openapi/served-operations.ts'
import { persistWords } from '../browser-contexts/context-labels.ts'
import { selectField } from '../elements.ts'
import { type Html, html } from '../html.ts'
import type { WithContext } from './curl.ts'

export interface BrowserChoice {
  /** Empty for none. */
  contextId: string
  persist: PersistContext
  error?: string
}

const persistDefault = defaultOf('persistContext')

/** As the Execution API has it. */
function defaultOf(name: string): PersistContext {
  const queueing = readOperations(executionContract.document).find(({ id }) => id === 'queueRemoteRun')
  const schema = queueing?.parameters.find((parameter) => parameter.name === name)?.schema
  const value = resolve<{ default?: unknown }>(executionContract.document as Document, schema)?.default
  if (isPersist(value)) return value
  throw new Error(`queueRemoteRun is to have a default for ${name}.`)
}

function isPersist(value: unknown): value is PersistContext {
  return typeof value === 'string' && Object.hasOwn(persistWords, value)
}

/** @param contextId of a context that was chosen before the form was opened. */
export function newChoice(from: Run | undefined, contextId: string): BrowserChoice {
  if (contextId !== '' || !from)
    return { contextId: contextId.toLowerCase(), persist: from?.persistContext ?? persistDefault }
  return { contextId: from.browserContextId ?? '', persist: from.persistContext ?? persistDefault }
}

/** The choice as it was sent. */
export function choiceOf(form: URLSearchParams): BrowserChoice {
  const persist = form.get('persistContext') ?? persistDefault
  const contextId = (form.get('browserContextId') ?? '').toLowerCase()
  return isPersist(persist)
    ? { contextId, persist }
    : { contextId, persist: persistDefault, error: 'Choose when it is kept.' }
}

/** The choice as the Execution API has it; `undefined` for none, or one that is not among those to choose from. */
export function withContext({ contextId, persist }: BrowserChoice, contexts: readonly BrowserContext[]) {
  if (!contexts.some(({ id }) => id === contextId)) return undefined
  return { browserContextId: contextId, persistContext: persist } satisfies WithContext
}

const statusNotes = { empty: ' (empty)', ready: '', inUse: ' (in use)' }

/** @param contexts those that can be chosen. One that was deleted since cannot, and none stands in its place. */
export function browserFields({ contextId, persist, error }: BrowserChoice, contexts: readonly BrowserContext[]): Html {
  const none = { value: '', title: 'none: it starts empty, and nothing is kept' }
  const options = contexts.map(({ id, name, status }) => ({ value: id, title: `${name}${statusNotes[status]}` }))
  const kept = Object.entries(persistWords).map(([value, title]) => ({ value, title }))
  const isGone = contextId !== '' && !contexts.some(({ id }) => id === contextId)
  const fault =
    error ?? (isGone ? 'The browser context that was chosen is gone. Choose another one, or none.' : undefined)
  return html`${selectField({
    name: 'browserContextId',
    label: 'Browser context',
    value: contextId,
    error: fault,
    options: [none, ...options],
    hint: html`What its browser starts with. <a href="/browser-contexts">See all browser contexts</a>`,
  })}
  ${selectField({
    name: 'persistContext',
    label: 'What its browser holds at the end is kept in it',
    value: persist,
    options: kept,
  })}`
}
