/** Templates of the list of browser contexts and of one context's page. They never show a stored value. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { stateBytesMax } from '../../../domain/browser-contexts/storage-state.ts'
import type { Version } from '../../../domain/browser-contexts/version-list.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatBytes, time } from '../format.ts'
import {
  backLink,
  badge,
  copyable,
  copyableId,
  emptyState,
  facts,
  type Html,
  heading,
  html,
  labelledField,
  nothing,
  notice,
  table,
} from '../html.ts'
import { type QueuerLabel, runLink } from '../runs/run-labels.ts'
import { queueCommand, uploadCommand } from '../workflows/curl-commands.ts'
import { contextBadge, contextLink, renderSites } from './context-labels.ts'

interface ContextList {
  contexts: BrowserContext[]
  nextCursor: string | null
  isFirstPage: boolean
  done: string
}

const createButton = html`<a class="button" href="/browser-contexts/new">Create browser context</a>`

export function renderContextList({ contexts, nextCursor, isFirstPage, done }: ContextList): Html {
  const isEmpty = contexts.length === 0 && isFirstPage
  const lead = 'Saved browser state for your workflows: cookies and site storage. Encrypted at rest.'
  const newest = html`<a href="/browser-contexts">← Newest</a>`
  const older =
    nextCursor && html`<a href="/browser-contexts?${new URLSearchParams({ cursor: nextCursor })}">Older →</a>`
  return html`${heading('Browser Contexts', { lead, ...(!isEmpty && { actions: createButton }) })}
    ${done === 'deleted' ? notice('good', 'Browser context deleted. Its contents were erased.') : nothing}
    <div id="browser-contexts" data-live="/runs/changes">
      ${isEmpty ? noContexts : renderContextTable(contexts)}
      <p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>
    </div>`
}

const noContexts = emptyState(
  'No browser contexts',
  html`<p>A browser context stores what a browser remembers between runs, such as a signed-in session.</p>
    <p>Queue a run with a browser context to start its browser from that state, and to save the state at the end for the
      next run.</p>
    <p>${createButton}</p>`,
)

const columns = ['Name', 'Status', 'Version', 'Sites', 'Size', 'Updated', 'Last used']

function renderContextTable(contexts: BrowserContext[]): Html {
  const rows = contexts.map((context) => [
    html`<strong>${contextLink(context)}</strong>`,
    html`<div class="stack">${contextBadge(context)} ${context.heldByRunId === null ? nothing : html`<small>${runLink(context.heldByRunId)}</small>`}</div>`,
    context.version === 0 ? html`<span class="muted">none</span>` : `${context.version}`,
    renderSites(context, 3),
    context.version === 0 ? html`<span class="muted">–</span>` : formatBytes(context.sizeBytes),
    time(context.updatedAt),
    time(context.lastUsedAt),
  ])
  return table(columns, rows, 'Browser contexts, newest first')
}

interface ContextPage {
  context: BrowserContext
  /** Newest first. */
  versions: Version[]
  queuerLabel: QueuerLabel
  workflows: Workflow[]
  addresses: ReturnType<Dependencies['addresses']>
  done: string
  uploadError: Html | string | undefined
}

const doneMessages = new Map([
  ['created', 'Browser context created. It is empty until a run saves its state or you upload a storage state.'],
  ['renamed', 'Browser context renamed.'],
  ['uploaded', 'Storage state uploaded. The next run with this browser context starts with it.'],
  ['restored', 'Restored as a new version. The next run with this browser context starts with it.'],
])

const sitesMax = 60

export function renderContext(page: ContextPage): Html {
  const { context, done, uploadError } = page
  const { id, name, heldByRunId, version, sizeBytes, createdAt, updatedAt, lastUsedAt } = context
  const message = doneMessages.get(done)
  const lead = copyableId('context-id', id, 'Copy browser context ID')
  const actions = html`<a class="button secondary" href="/browser-contexts/${id}/rename">Rename</a>
    <a class="button secondary danger" href="/browser-contexts/${id}/delete">Delete</a>`
  return html`${backLink('/browser-contexts', 'Browser Contexts')}
    ${uploadError ? notice('bad', 'The file was not saved. See the error below.') : nothing}
    ${message ? notice('good', message) : nothing}
    <div id="browser-context" data-live="/runs/changes">
      ${contextBadge(context)} ${heading(name, { lead, actions })}
      <section class="card">
        ${facts([
          ['In use by', heldByRunId === null ? html`<span class="muted">no run</span>` : runLink(heldByRunId)],
          ['Version', version === 0 ? html`<span class="muted">none</span>` : `${version}`],
          ['Size', formatBytes(sizeBytes)],
          ['Created', time(createdAt, 'exact')],
          ['Updated', time(updatedAt, 'exact')],
          ['Last used', time(lastUsedAt, 'exact')],
        ])}
        ${facts([['Sites with cookies', renderSites(context, sitesMax)]])}
      </section>
      ${renderVersions(page)}
    </div>
    <div class="columns">
      <div>${renderUpload(page)}</div>
      <div>${renderUsage(page)}</div>
    </div>`
}

function renderVersions({ context, versions, queuerLabel }: ContextPage): Html {
  if (versions.length === 0) return html`<h2>Versions</h2><p class="muted">No state has been saved yet.</p>`
  const rows = versions.map((version) => {
    const { number, isCurrent, createdAt, sizeBytes } = version
    const path = `/browser-contexts/${context.id}/versions/${number}/restore`
    const restore = html`<span class="row-actions"><a href="${path}" aria-label="Restore version ${number}">Restore</a></span>`
    return [
      html`${number}${isCurrent ? html`\u00a0${badge('good', 'Current')}` : nothing}`,
      time(createdAt),
      renderWriter(version, queuerLabel),
      renderSites(version, 3),
      formatBytes(sizeBytes),
      isCurrent ? nothing : restore,
    ]
  })
  return html`<h2>Versions</h2>
    ${table(['Version', 'Saved', 'Saved by', 'Sites', 'Size', ''], rows, 'Versions, newest first')}`
}

/** Who saved the version, and from which one it was restored. */
export function renderWriter(version: Version, queuerLabel: QueuerLabel): Html {
  const { runId, restoredFrom } = version
  const restored = restoredFrom !== null && html`<small class="unbroken">restored from ${restoredFrom}</small>`
  return html`<div class="stack">${runId === null ? queuerLabel(version) : runLink(runId)} ${restored || nothing}</div>`
}

export const fileField = 'state'

const recordCommand = 'npx playwright codegen --save-storage=state.json https://example.com'

function renderUpload({ context, uploadError, addresses }: ContextPage): Html {
  const upload = uploadCommand(addresses.browserContextUrl, context.id, 'state.json')
  return html`<form method="post" enctype="multipart/form-data" action="/browser-contexts/${context.id}" class="card">
    <h2>Upload a storage state</h2>
    <p>A file written by Playwright’s <code>context.storageState({ path })</code>. It becomes the next version; earlier
      versions can be restored.</p>
    ${labelledField(
      { name: fileField, label: 'File', hint: `JSON, up to ${formatBytes(stateBytesMax)}.`, error: uploadError },
      (common) => html`<input type="file" ${common} accept=".json,application/json" required />`,
    )}
    <div class="buttons"><button>Upload</button></div>
    <details>
      <summary>Create the file by signing in to a site</summary>
      <p>Playwright opens a browser and writes the file when you close it.</p>
      ${copyable('record-command', recordCommand, { label: 'Copy command' })}
    </details>
    <details>
      <summary>Upload with curl</summary>
      ${copyable('upload-command', upload, { label: 'Copy command' })}
    </details>
  </form>`
}

const workflowsMax = 5

function renderUsage({ context, workflows, addresses }: ContextPage): Html {
  const [first] = workflows
  const browserContext = { browserContextId: context.id, persistContext: 'onSuccess' } as const
  const variables = first ? exampleVariables(first.variables) : {}
  const command = queueCommand(addresses.executionUrl, first?.id ?? '<WORKFLOW_ID>', variables, { browserContext })
  const links = workflows.slice(0, workflowsMax).map(({ id, title }) => {
    const query = new URLSearchParams({ browserContextId: context.id })
    return html`<li><a href="/workflows/${id}?${query}#queue">${title}</a></li>`
  })
  const intro = first
    ? html`<p>Run a workflow with it:</p><ul>${links}</ul><p>Or queue a run from a program:</p>`
    : html`<p>No deployed workflow uses a browser. A workflow does if its definition has <code>browser: true</code>.
        Queue a run of it from a program:</p>`
  return html`<section class="card">
    <h2>Use in a run</h2>
    ${intro} ${copyable('context-command', command, { label: 'Copy command' })}
    <p class="muted">Replace <code>&lt;API_KEY&gt;</code> with an <a href="/api-keys">API key</a>.
      <code>persistContext</code> decides when the browser state is saved: <code>onSuccess</code>, <code>always</code> or
      <code>never</code>.</p>
  </section>`
}
