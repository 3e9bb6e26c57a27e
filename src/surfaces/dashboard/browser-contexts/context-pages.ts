/**
 * The tab "Browser Contexts": create, rename, delete, upload storage states, restore versions. Every user of the account
 * can do all of this.
 */

import type { Mismatch } from '../../../contract/compiled-checks.ts'
import { parseJson } from '../../../contract/i-json.ts'
import { Problem } from '../../../contract/problem.ts'
import { findValueErrors } from '../../../contract/value-checks.ts'
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext, BrowserContextStatus } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { ContextInUse, Version } from '../../../domain/browser-contexts/context-versions.ts'
import { stateBytesMax } from '../../../domain/browser-contexts/storage-state.ts'
import { nameError, nameLengthMax } from '../../../domain/display-names.ts'
import type { PersistContext } from '../../../domain/runs/run.ts'
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
  inputField,
  labelledField,
  nothing,
  notice,
  renamePage,
  type Tone,
  table,
} from '../html.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { type QueuerLabel, readQueuerLabels, runLink } from '../runs/run-labels.ts'
import { queueCommand, uploadCommand } from '../workflows/curl-commands.ts'
import { renderNeeding, renderSignIn, type ShownSignIn, signInBadge } from './sign-in-state.ts'

const contextsPerPage = 50

const nameTaken = 'Another browser context has this name. Enter a different name.'

export const listContexts: PageHandler = async ({ account, user, query }, { browserContexts, signIns }) => {
  const cursor = query.get('cursor') ?? undefined
  const list = await browserContexts.list(account.id, { limit: contextsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!list) return { location: '/browser-contexts' }
  const { contexts, nextCursor } = list
  const isFirstPage = cursor === undefined
  const isEmpty = contexts.length === 0 && isFirstPage
  const needing = isFirstPage ? await signIns.needed(account.id) : []
  const lead = 'Saved browser state for your workflows: cookies and site storage. Encrypted at rest.'
  const newest = html`<a href="/browser-contexts">← Newest</a>`
  const older =
    nextCursor && html`<a href="/browser-contexts?${new URLSearchParams({ cursor: nextCursor })}">Older →</a>`
  const body = html`${heading('Browser Contexts', { lead, ...(!isEmpty && { actions: createButton(user) }) })}
    ${query.get('done') === 'deleted' ? notice('good', 'Browser context deleted. Its contents were erased.') : nothing}
    <div id="browser-contexts" data-live="/runs/changes">
      ${renderNeeding(needing)} ${isEmpty ? noContexts(user) : renderContextTable(contexts)}
      <p class="pages">${isFirstPage ? nothing : newest} ${older ?? nothing}</p>
    </div>`
  return contextTab('Browser Contexts', body)
}

export const showNewContext: PageHandler = async () => newContextPage('')

export const createContext: PageHandler = async ({ account, form, actor }, { browserContexts }) => {
  const name = parseName(form)
  const error = name === '' ? undefined : nameError(name)
  if (error !== undefined) return newContextPage(name, error, 400)
  const created = await browserContexts.create(account.id, name || undefined, actor)
  return created ? redirectTo(created.id, 'created') : newContextPage(name, nameTaken, 409)
}

function newContextPage(name: string, error?: string, status = 200): Page {
  const hint = 'For example, “shop, signed in”. Leave empty for a generated name.'
  const body = html`${backLink('/browser-contexts', 'Browser Contexts')} ${heading('Create browser context')}
    <form method="post" action="/browser-contexts/new" class="card">
      ${inputField({ name: 'name', label: 'Name', value: name, error, maxlength: nameLengthMax, autofocus: true, hint })}
      <div class="buttons"><button>Create browser context</button><a href="/browser-contexts">Cancel</a></div>
    </form>`
  return contextTab('Create browser context', body, status)
}

export const showContext: PageHandler = (request, deps) => contextPage(request, deps)

export const uploadState: PageHandler = async (request, deps) => {
  const { account, user, actor, file } = request
  const { id } = await findContext(request, deps)
  if (file === 'none') return contextPage(request, deps, { error: 'Choose a file.', status: 400 })
  if (file === 'tooLarge') return contextPage(request, deps, { error: fileTooLarge, status: 413 })
  const read = readStorageState(file)
  if ('error' in read) return contextPage(request, deps, { error: read.error, status: 400 })
  const writer = { userId: user.id }
  const replaced = orNotFound(await deps.contextVersions.replace(account.id, id, read.state, writer, { actor }))
  if (!isInUse(replaced)) return redirectTo(id, 'uploaded')
  return contextPage(request, deps, { error: inUseMessage(replaced.heldByRunId), status: 409 })
}

async function contextPage(
  request: PageRequest,
  deps: Dependencies,
  upload?: { error: Html | string; status: number },
): Promise<Page> {
  const { account, params, query } = request
  const [context, versions, queuerLabel] = await Promise.all([
    findContext(request, deps),
    deps.contextVersions.list(account.id, params.id ?? ''),
    readQueuerLabels(deps, account.id),
  ])
  const signIn = await deps.signIns.get(account.id, context.id)
  const body = renderContext({
    context,
    versions: orNotFound(versions),
    signIn: signIn && { ...signIn, history: await deps.signIns.history(account.id, context.id) },
    queuerLabel,
    workflows: deps.workflows
      .current(account.id)
      .list()
      .filter(({ usesBrowser }) => usesBrowser),
    addresses: deps.addresses(),
    done: query.get('done') ?? '',
    uploadError: upload?.error,
    user: request.user,
  })
  return contextTab(context.name, body, upload?.status)
}

export const showContextRename: PageHandler = async (request, deps) => {
  const context = await findContext(request, deps)
  return renameContextPage(context, context.name)
}

export const renameContext: PageHandler = async (request, deps) => {
  const { account, form, actor } = request
  const context = await findContext(request, deps)
  const name = parseName(form)
  const error = nameError(name)
  if (error !== undefined) return renameContextPage(context, name, error, 400)
  const renamed = await deps.browserContexts.rename(account.id, context.id, name, actor)
  if (renamed === 'nameTaken') return renameContextPage(context, name, nameTaken, 409)
  return redirectTo(orNotFound(renamed !== 'noSuchContext' && renamed).id, 'renamed')
}

function renameContextPage({ id, name }: BrowserContext, value: string, error?: string, status = 200): Page {
  const title = 'Rename browser context'
  return contextTab(title, renamePage(title, { path: `/browser-contexts/${id}`, title: name }, value, error), status)
}

export const confirmContextDeletion: PageHandler = async (request, deps) =>
  contextTab('Delete browser context', renderContextDeletion(await findContext(request, deps)))

export const deleteContext: PageHandler = async ({ account, params, actor }, { browserContexts }) => {
  orNotFound(await browserContexts.delete(account.id, params.id ?? '', actor))
  return { location: '/browser-contexts?done=deleted' }
}

export const confirmRestore: PageHandler = (request, deps) => restorePage(request, deps)

export const restoreVersion: PageHandler = async (request, deps) => {
  const { account, user, actor } = request
  const { id } = await findContext(request, deps)
  const { number } = await findOlderVersion(request, deps)
  const writer = { userId: user.id }
  const restored = orNotFound(await deps.contextVersions.restore(account.id, id, number, writer, { actor }))
  return isInUse(restored) ? restorePage(request, deps, restored) : redirectTo(id, 'restored')
}

async function restorePage(request: PageRequest, deps: Dependencies, inUse?: ContextInUse): Promise<Page> {
  const [context, version, queuerLabel] = await Promise.all([
    findContext(request, deps),
    findOlderVersion(request, deps),
    readQueuerLabels(deps, request.account.id),
  ])
  const { id, name } = context
  const { number, createdAt, sizeBytes } = version
  const body = html`${backLink(`/browser-contexts/${id}`, name)} ${heading(`Restore version ${number}?`)}
    ${inUse ? notice('bad', inUseMessage(inUse.heldByRunId)) : nothing}
    <form method="post" class="card">
      <p>Its state becomes version ${context.version + 1}, which the next run starts with. You can still restore version
        ${context.version} later.</p>
      ${facts([
        ['Saved', time(createdAt, 'exact')],
        ['Saved by', renderWriter(version, queuerLabel)],
        ['Size', formatBytes(sizeBytes)],
        ['Sites', renderSites(version, 10)],
      ])}
      <div class="buttons"><button>Restore version ${number}</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
  return contextTab('Restore version', body, inUse ? 409 : 200)
}

async function findContext({ account, params }: PageRequest, { browserContexts }: Dependencies) {
  return orNotFound(await browserContexts.get(account.id, params.id ?? ''))
}

/** The version that the path names, unless it is the current one. */
async function findOlderVersion({ account, params }: PageRequest, { contextVersions }: Dependencies) {
  const versions = orNotFound(await contextVersions.list(account.id, params.id ?? ''))
  return orNotFound(versions.find(({ number, isCurrent }) => String(number) === params.version && !isCurrent))
}

function isInUse(result: object): result is ContextInUse {
  return 'heldByRunId' in result
}

function parseName(form: URLSearchParams): string {
  return (form.get('name') ?? '').trim()
}

function redirectTo(id: string, done: string): { location: string } {
  return { location: `/browser-contexts/${id}?done=${done}` }
}

function contextTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'browser-contexts', body, status }
}

function renderContextDeletion(context: BrowserContext): Html {
  const { id, name, heldByRunId, version, lastUsedAt } = context
  const inUse =
    heldByRunId !== null &&
    html`<p>${runLink(heldByRunId, 'Run')} is using it. The run continues, but its browser state is not saved.</p>`
  return html`${backLink(`/browser-contexts/${id}`, name)} ${heading(`Delete “${name}”?`)}
    <form method="post" class="card">
      <p>All versions are erased. <strong>This cannot be undone.</strong></p>
      <p>Queued runs that use it still start, and fail when they request their browser.</p>
      ${inUse || nothing}
      ${facts([
        ['Version', version === 0 ? 'none' : `${version}`],
        ['Sites', renderSites(context, 10)],
        ['Last used', time(lastUsedAt)],
      ])}
      <div class="buttons"><button class="danger">Delete browser context</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}

// Validates uploaded storage states by the schema of the Browser Context API. Errors name members, never their values,
// which may be secrets.

const fileTooLarge = `The file is too large. A storage state has at most ${formatBytes(stateBytesMax)}.`

/** The storage state as JSON text, as the API stores it; or why it is invalid, in sentences. */
function readStorageState(file: Uint8Array): { state: string } | { error: string } {
  try {
    const value = parseJson(Buffer.from(file.buffer, file.byteOffset, file.byteLength))
    if (value === undefined) return { error: 'The file is empty.' }
    const [error] = findValueErrors('StorageState', value as object)
    return error ? { error: toSentence(error) } : { state: JSON.stringify(value) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const errors = error.problem.errors ?? []
    return { error: errors.map((each) => toSentence({ pointer: '', ...each })).join(' ') }
  }
}

function toSentence({ pointer, detail }: Mismatch): string {
  return `${pointer === '' ? 'The file' : pointer} ${detail}.`
}

// Templates of the list of browser contexts and of one context's page. They never show a stored value.

const createButton = (user: User) =>
  may(user, 'GET /browser-contexts/new')
    ? html`<a class="button" href="/browser-contexts/new">Create browser context</a>`
    : html``

const noContexts = (user: User) =>
  emptyState(
    'No browser contexts',
    html`<p>A browser context stores what a browser remembers between runs, such as a signed-in session.</p>
    <p>Queue a run with a browser context to start its browser from that state, and to save the state at the end for the
      next run.</p>
    <p>${createButton(user)}</p>`,
  )

const columns = ['Name', 'Status', { number: 'Version' }, 'Sites', { number: 'Size' }, 'Updated', 'Last used']

function renderContextTable(contexts: BrowserContext[]): Html {
  const rows = contexts.map((context) => [
    html`<strong>${contextLink(context)}</strong>`,
    html`<div class="stack">${contextBadge(context)} ${context.signIn ? signInBadge(context.signIn) : nothing} ${context.heldByRunId === null ? nothing : html`<small>${runLink(context.heldByRunId)}</small>`}</div>`,
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
  signIn: ShownSignIn | undefined
  queuerLabel: QueuerLabel
  workflows: Workflow[]
  addresses: ReturnType<Dependencies['addresses']>
  done: string
  uploadError: Html | string | undefined
  user: User
}

const doneMessages = new Map([
  ['created', 'Browser context created. It is empty until a run saves its state or you upload a storage state.'],
  ['renamed', 'Browser context renamed.'],
  ['uploaded', 'Storage state uploaded. The next run with this browser context starts with it.'],
  ['restored', 'Restored as a new version. The next run with this browser context starts with it.'],
  ['signInSet', 'Sign-in saved. A run signs in when it is needed.'],
  ['signInDeleted', 'Sign-in deleted. Its secrets and history were erased.'],
  ['signingIn', 'A run signs in.'],
  ['alreadySigningIn', 'A run signs in now. Wait until it has ended, or cancel it.'],
  ['byHandCancelled', 'Cancelled. Nothing was stored.'],
])

const signInRefused =
  'No run was queued: the workflow of the sign-in is no longer deployed, or no longer accepts its variables. Edit the sign-in.'

const sitesMax = 60

function renderContext(page: ContextPage): Html {
  const { context, done, uploadError, user } = page
  const { id, name, heldByRunId, version, sizeBytes, createdAt, updatedAt, lastUsedAt } = context
  const message = doneMessages.get(done)
  const lead = copyableId('context-id', id, 'Copy browser context ID')
  const rename = html`<a class="button secondary" href="/browser-contexts/${id}/rename">Rename</a>`
  const remove = html`<a class="button secondary danger" href="/browser-contexts/${id}/delete">Delete</a>`
  const actions = html`${may(user, 'GET /browser-contexts/:id/rename') ? rename : nothing}
    ${may(user, 'GET /browser-contexts/:id/delete') ? remove : nothing}`
  return html`${backLink('/browser-contexts', 'Browser Contexts')}
    ${uploadError ? notice('bad', 'The file was not saved. See the error below.') : nothing}
    ${message ? notice('good', message) : nothing}
    ${done === 'signInRefused' ? notice('bad', signInRefused) : nothing}
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
      ${renderSignIn(context, page.signIn, page.workflows, user)}
      ${renderVersions(page)}
    </div>
    <div class="columns">
      ${may(user, 'POST /browser-contexts/:id') ? html`<div>${renderUpload(page)}</div>` : nothing}
      <div>${renderUsage(page)}</div>
    </div>`
}

function renderVersions({ context, versions, queuerLabel, user }: ContextPage): Html {
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
      isCurrent || !may(user, 'GET /browser-contexts/:id/versions/:version/restore') ? nothing : restore,
    ]
  })
  return html`<h2>Versions</h2>
    ${table(['Version', 'Saved', 'Saved by', 'Sites', { number: 'Size' }, ''], rows, 'Versions, newest first')}`
}

/** Who saved the version, and from which one it was restored. */
function renderWriter(version: Version, queuerLabel: QueuerLabel): Html {
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

function renderUsage({ context, workflows, addresses, user }: ContextPage): Html {
  const [first] = workflows
  const options = { browserContextId: context.id, persistContext: 'onSuccess' } as const
  const variables = first ? exampleVariables(first.variables) : {}
  const command = queueCommand(addresses.executionUrl, first?.id ?? '<WORKFLOW_ID>', variables, { options })
  const links = workflows.slice(0, workflowsMax).map(({ id, title }) => {
    const query = new URLSearchParams({ browserContextId: context.id })
    return html`<li><a href="/workflows/${id}?${query}#queue">${title}</a></li>`
  })
  const offer = may(user, 'POST /workflows/:id') ? 'Run a workflow with it:' : 'Workflows that can use it:'
  const intro = first
    ? html`<p>${offer}</p><ul>${links}</ul><p>Queue a run from a program:</p>`
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

// How pages describe a browser context: its status, its sites, the run that uses it, and when a run saves into it.

const statusBadges: Record<BrowserContextStatus, [tone: Tone, text: string]> = {
  empty: ['quiet', 'Empty'],
  ready: ['good', 'Ready'],
  inUse: ['busy', 'In use'],
}

function contextBadge({ status }: BrowserContext): Html {
  return badge(...statusBadges[status])
}

export function contextLink({ id, name }: BrowserContext): Html {
  return html`<a href="/browser-contexts/${id}">${name}</a>`
}

function inUseMessage(runId: string): Html {
  return html`${runLink(runId, 'Run')} is using this browser context and may change it. Nothing was saved. Wait for the
    run to finish, or cancel it.`
}

/** The sites the context has cookies for. Beyond `maxShown`, only their number. */
function renderSites({ cookieDomains }: Pick<BrowserContext, 'cookieDomains'>, maxShown: number): Html {
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
