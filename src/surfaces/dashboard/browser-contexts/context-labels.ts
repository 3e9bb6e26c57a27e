/** How the dashboard says what a browser context is, who holds it, and when a run changes it. */
import type { BrowserContext, BrowserContextStatus } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { PersistContext } from '../../../domain/runs/run.ts'
import { badge, type Tone } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'

const looks: Record<BrowserContextStatus, { tone: Tone; word: string }> = {
  empty: { tone: 'quiet', word: 'empty' },
  ready: { tone: 'good', word: 'ready' },
  inUse: { tone: 'busy', word: 'in use' },
}

export function statusBadge({ status }: BrowserContext): Html {
  const { tone, word } = looks[status]
  return badge(tone, word)
}

export function contextLink({ id, name }: BrowserContext): Html {
  return html`<a href="/browser-contexts/${id}">${name}</a>`
}

/** Why a context cannot be changed now, for whoever has tried to. */
export function heldSentence(runId: string): Html {
  return html`${runLink(runId, 'Run')} holds this browser context and may be about to change it. Wait for its end, or
    cancel it. Nothing was stored.`
}

/** The sites that the context has cookies for: some, and how many more. */
export function sitesOf({ cookieDomains }: Pick<BrowserContext, 'cookieDomains'>, shownMax: number): Html {
  // A leading dot says that subdomains get the cookie too.
  const sites = [...new Set(cookieDomains.map((domain) => domain.replace(/^\./, '')))].sort()
  if (sites.length === 0) return html`<span class="muted">none</span>`
  const more = sites.length - shownMax
  return html`${sites.slice(0, shownMax).join(', ')}${more > 0 ? html` <span class="muted">+${more}</span>` : nothing}`
}

/** When what a run's browser holds is kept in its browser context. */
export const persistWords: Record<PersistContext, string> = {
  onSuccess: 'when the run succeeds',
  always: 'always, also when the run fails',
  never: 'never',
}
