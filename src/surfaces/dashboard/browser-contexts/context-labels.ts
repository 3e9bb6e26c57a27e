/** How pages describe a browser context: its status, its sites, the run that uses it, and when a run saves into it. */
import type { BrowserContext, BrowserContextStatus } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { PersistContext } from '../../../domain/runs/run.ts'
import { badge, type Html, html, nothing, type Tone } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'

const statusBadges: Record<BrowserContextStatus, [tone: Tone, text: string]> = {
  empty: ['quiet', 'Empty'],
  ready: ['good', 'Ready'],
  inUse: ['busy', 'In use'],
}

export function contextBadge({ status }: BrowserContext): Html {
  return badge(...statusBadges[status])
}

export function contextLink({ id, name }: BrowserContext): Html {
  return html`<a href="/browser-contexts/${id}">${name}</a>`
}

export function inUseMessage(runId: string): Html {
  return html`${runLink(runId, 'Run')} is using this browser context and may change it. Nothing was saved. Wait for the
    run to finish, or cancel it.`
}

/** The sites the context has cookies for. Beyond `maxShown`, only their number. */
export function renderSites({ cookieDomains }: Pick<BrowserContext, 'cookieDomains'>, maxShown: number): Html {
  // A leading dot means that the cookie is also for subdomains.
  const sites = [...new Set(cookieDomains.map((domain) => domain.replace(/^\./, '')))].sort()
  if (sites.length === 0) return html`<span class="muted">none</span>`
  const more = sites.length - maxShown
  return html`${sites.slice(0, maxShown).join(', ')}${more > 0 ? html` <span class="muted">+${more}</span>` : nothing}`
}

/** When the browser's state at the end of a run is saved into its browser context. */
export const persistLabels: Record<PersistContext, string> = {
  onSuccess: 'If the run succeeds',
  always: 'Always, even if the run fails',
  never: 'Never',
}
