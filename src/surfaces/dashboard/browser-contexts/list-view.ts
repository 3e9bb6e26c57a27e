/** What the list of browser contexts looks like. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { byteSize, emptyState, heading, moment, notice, table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'
import { contextLink, sitesOf, statusBadge } from './context-labels.ts'

interface ContextList {
  contexts: BrowserContext[]
  nextCursor: string | null
  isFirstPage: boolean
  done: string
}

export function listView(list: ContextList): Html {
  const { contexts, isFirstPage, done } = list
  const hasNone = contexts.length === 0 && isFirstPage
  const lead = 'What browsers remember between runs: cookies, and what sites have stored. Encrypted at rest.'
  const actions = html`<a class="button" href="/browser-contexts/new">Create browser context</a>`
  return html`${heading('Browser Contexts', { lead, ...(!hasNone && { actions }) })}
    ${done === 'deleted' ? notice('good', 'Deleted. What it held is erased.') : nothing}
    <div id="browser-contexts" data-live="/runs/changes">
      ${hasNone ? noContexts() : contextTable(contexts)} ${pageLinks(list)}
    </div>`
}

function noContexts(): Html {
  return emptyState(
    'No browser context yet',
    html`<p>A browser context is what a browser remembers, such as that somebody is signed in to a site.</p>
      <p>A run of a workflow that uses a browser is queued with one, and its browser starts from there. What the browser
        remembers at the end of the run can be kept for the next one, so that it need not sign in again.</p>
      <p><a class="button" href="/browser-contexts/new">Create your first browser context</a></p>`,
  )
}

const columns = ['Name', 'Status', 'Version', 'Sites with cookies', 'Size', 'Updated', 'Last used']

function contextTable(contexts: BrowserContext[]): Html {
  const rows = contexts.map((context) => [
    html`<strong>${contextLink(context)}</strong>`,
    html`<div class="stack">${statusBadge(context)} ${context.heldByRunId === null ? nothing : html`<small>${runLink(context.heldByRunId)}</small>`}</div>`,
    context.version === 0 ? html`<span class="muted">none</span>` : `${context.version}`,
    sitesOf(context, 3),
    context.version === 0 ? html`<span class="muted">–</span>` : byteSize(context.sizeBytes),
    moment(context.updatedAt),
    moment(context.lastUsedAt),
  ])
  return table(columns, rows, 'Browser contexts, newest first')
}

function pageLinks({ nextCursor, isFirstPage }: ContextList): Html {
  const older =
    nextCursor && html`<a href="/browser-contexts?${new URLSearchParams({ cursor: nextCursor })}">Older →</a>`
  return html`<p class="pages">${isFirstPage ? nothing : html`<a href="/browser-contexts">← Newest</a>`} ${older ?? nothing}</p>`
}
