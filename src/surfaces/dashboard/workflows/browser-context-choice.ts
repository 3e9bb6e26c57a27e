/** The choice of a browser context in the queue form, and of when the run saves into it. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { PersistContext, Run } from '../../../domain/runs/run.ts'
import { persistLabels } from '../browser-contexts/context-labels.ts'
import { type Html, html, selectField } from '../html.ts'
import type { ContextQuery } from './curl-commands.ts'
import { parameterSchema } from './queue-options.ts'

export interface ContextChoice {
  /** Empty for none. */
  contextId: string
  persist: PersistContext
  error?: string
}

export const persistDefault = parameterSchema('persistContext').default as PersistContext

export function isPersistContext(value: unknown): value is PersistContext {
  return typeof value === 'string' && Object.hasOwn(persistLabels, value)
}

/** @param contextId preselected; when empty, the context of the run that is run again. */
export function initialChoice(from: Run | undefined, contextId: string): ContextChoice {
  const persist = from?.persistContext ?? persistDefault
  return { contextId: contextId.toLowerCase() || (from?.browserContextId ?? ''), persist }
}

export function readChoice(form: URLSearchParams): ContextChoice {
  const persist = form.get('persistContext') ?? persistDefault
  const contextId = (form.get('browserContextId') ?? '').toLowerCase()
  if (isPersistContext(persist)) return { contextId, persist }
  return { contextId, persist: persistDefault, error: 'Choose when to save the browser state.' }
}

/** `undefined` for none, or when the chosen context is not among `contexts`. */
export function toContextQuery({ contextId, persist }: ContextChoice, contexts: readonly BrowserContext[]) {
  if (!contexts.some(({ id }) => id === contextId)) return undefined
  return { browserContextId: contextId, persistContext: persist } satisfies ContextQuery
}

const statusNotes = { empty: ' (empty)', ready: '', inUse: ' (in use)' }

/** @param contexts to choose from. When the chosen one was deleted, an error says so and none is selected. */
export function renderContextChoice(choice: ContextChoice, contexts: readonly BrowserContext[]): Html {
  const { contextId, persist, error } = choice
  const none = { value: '', title: 'None: start with an empty browser, save nothing' }
  const options = contexts.map(({ id, name, status }) => ({ value: id, title: `${name}${statusNotes[status]}` }))
  const isGone = contextId !== '' && !contexts.some(({ id }) => id === contextId)
  const goneError = isGone ? 'The selected browser context was deleted. Choose another one, or none.' : undefined
  return html`${selectField({
    name: 'browserContextId',
    label: 'Browser context',
    value: contextId,
    error: error ?? goneError,
    options: [none, ...options],
    hint: html`The state that the browser starts with. <a href="/browser-contexts">View browser contexts</a>`,
  })}
  ${selectField({
    name: 'persistContext',
    label: 'Save browser state',
    value: persist,
    options: Object.entries(persistLabels).map(([value, title]) => ({ value, title })),
  })}`
}
