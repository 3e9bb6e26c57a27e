/** What the page of a browser context looks like. What the context holds is shown nowhere. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Version } from '../../../domain/browser-contexts/context-versions.ts'
import { stateBytesMax } from '../../../domain/browser-contexts/storage-state.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Parts } from '../dependencies.ts'
import { badge, byteSize, copyable, facts, heading, labelledField, moment, notice, table, trail } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { QueuerOf } from '../runs/queuers.ts'
import { runLink } from '../runs/run-labels.ts'
import { queueCommand, uploadCommand } from '../workflows/curl.ts'
import { exampleOf } from '../workflows/example.ts'
import { sitesOf, statusBadge } from './context-labels.ts'

interface ShownContext {
  context: BrowserContext
  /** Newest first. */
  versions: Version[]
  userOf: QueuerOf
  /** Those that use a browser. */
  workflows: Workflow[]
  addresses: ReturnType<Parts['addresses']>
  done: string
  /** Why the file that was sent was not taken. */
  fault: Html | string | undefined
}

const endings = new Map([
  ['created', 'Created. It is empty until a run keeps something in it, or you upload a storage state.'],
  ['renamed', 'Renamed.'],
  ['uploaded', 'Uploaded. The next run with this browser context starts with it.'],
  ['restored', 'Restored, as a new version. The next run with this browser context starts with it.'],
])

/** More sites are counted. */
const sitesMax = 60

export function contextView(shown: ShownContext): Html {
  const { context, done, fault } = shown
  const ending = endings.get(done)
  return html`${trail('/browser-contexts', 'Browser Contexts')}
    ${fault ? notice('bad', 'Nothing was stored. Mend what is marked below.') : nothing}
    ${ending ? notice('good', ending) : nothing}
    <div id="browser-context" data-live="/runs/changes">
      ${head(context)}
      <section class="card">
        ${facts(factsOf(context))} ${facts([['Sites with cookies', sitesOf(context, sitesMax)]])}
      </section>
      ${versionsPart(shown)}
    </div>
    <div class="beside">
      <div>${uploadPart(shown)}</div>
      <div>${usePart(shown)}</div>
    </div>`
}

function head(context: BrowserContext): Html {
  const { id, name } = context
  const actions = html`<a class="button secondary" href="/browser-contexts/${id}/rename">Rename</a>
    <a class="button secondary danger" href="/browser-contexts/${id}/delete">Delete</a>`
  const lead = html`<span class="copied"><code id="context-id">${id}</code>
    <button type="button" class="quiet" data-copy="#context-id" aria-label="Copy the browser context's id" hidden>Copy</button></span>`
  return html`<div class="run-head">${statusBadge(context)} ${heading(name, { lead, actions })}</div>`
}

function factsOf(context: BrowserContext): [string, Html | string][] {
  const { heldByRunId, version, sizeBytes, createdAt, updatedAt, lastUsedAt } = context
  return [
    ['Held by', heldByRunId === null ? html`<span class="muted">no run</span>` : runLink(heldByRunId)],
    ['Version', version === 0 ? html`<span class="muted">none yet</span>` : `${version}`],
    ['Size', byteSize(sizeBytes)],
    ['Created', moment(createdAt, 'exact')],
    ['Updated', moment(updatedAt, 'exact')],
    ['Last used', moment(lastUsedAt, 'exact')],
  ]
}

function versionsPart({ context, versions, userOf }: ShownContext): Html {
  if (versions.length === 0) return html`<h2>Versions</h2><p class="muted">Nothing was stored in it yet.</p>`
  const rows = versions.map((version) => {
    const { number, isCurrent, createdAt, sizeBytes } = version
    const path = `/browser-contexts/${context.id}/versions/${number}/restore`
    return [
      html`${number}${isCurrent ? html`\u00a0${badge('good', 'current')}` : nothing}`,
      moment(createdAt),
      writerOf(version, userOf),
      sitesOf(version, 3),
      byteSize(sizeBytes),
      isCurrent
        ? nothing
        : html`<span class="row-actions"><a href="${path}" aria-label="Restore version ${number}">Restore</a></span>`,
    ]
  })
  return html`<h2>Versions</h2>
    ${table(['Version', 'Written', 'By', 'Sites with cookies', 'Size', ''], rows, 'Versions, newest first')}`
}

/** Who has written the version, and whether it repeats another. */
export function writerOf(version: Version, userOf: QueuerOf): Html {
  const { runId, restoredFrom } = version
  const restored = restoredFrom === null ? nothing : html`<small class="unbroken">restored from ${restoredFrom}</small>`
  return html`<div class="stack">${runId === null ? userOf(version) : runLink(runId)} ${restored}</div>`
}

export const fileField = 'state'

function uploadPart({ context, fault, addresses }: ShownContext): Html {
  const field = { name: fileField, label: 'File', hint: `JSON of at most ${byteSize(stateBytesMax)}.` }
  const chooser = (given: Html) => html`<input type="file" ${given} accept=".json,application/json" required />`
  return html`<form method="post" enctype="multipart/form-data" action="/browser-contexts/${context.id}" class="card">
    <h2>Upload a storage state</h2>
    <p>As Playwright writes it with <code>context.storageState({ path })</code>. It becomes the next version; the
      versions before it can be restored.</p>
    ${labelledField({ ...field, ...(fault !== undefined && { error: fault }) }, chooser)}
    <div class="buttons"><button>Upload</button></div>
    <details>
      <summary>Make such a file by signing in to a site</summary>
      <p>Playwright opens a browser, and writes the file when you close it.</p>
      ${copyable('record-command', 'npx playwright codegen --save-storage=state.json https://example.com', { label: 'Copy command' })}
    </details>
    <details>
      <summary>Upload it with curl</summary>
      ${copyable('upload-command', uploadCommand(addresses.browserContextUrl, context.id, 'state.json'), { label: 'Copy command' })}
    </details>
  </form>`
}

/** More workflows are found in their own tab. */
const workflowsMax = 5

function usePart({ context, workflows, addresses }: ShownContext): Html {
  const [first] = workflows
  const browserContext = { browserContextId: context.id, persistContext: 'onSuccess' } as const
  const variables = first ? exampleOf(first.variables) : {}
  const command = queueCommand(addresses.executionUrl, first?.id ?? '<WORKFLOW_ID>', variables, { browserContext })
  const links = workflows.slice(0, workflowsMax).map(({ id, title }) => {
    const query = new URLSearchParams({ browserContextId: context.id })
    return html`<li><a href="/workflows/${id}?${query}#queue">${title}</a></li>`
  })
  const hand = first
    ? html`<p>Run one of these workflows with it:</p><ul>${links}</ul><p>Or let a program do so:</p>`
    : html`<p>No workflow that is installed uses a browser yet: one does that has <code>browser: true</code> in its
        definition. A program queues a run of it like this:</p>`
  return html`<section class="card">
    <h2>Use it</h2>
    ${hand} ${copyable('context-command', command, { label: 'Copy command' })}
    <p class="muted">With an <a href="/api-keys">API key</a> in place of <code>&lt;API_KEY&gt;</code>. What the browser
      holds is kept in it as <code>persistContext</code> says: <code>onSuccess</code>, <code>always</code> or
      <code>never</code>.</p>
  </section>`
}
