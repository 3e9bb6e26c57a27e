/** The tab "API Keys": list, create, rename, rotate and delete keys (interface, sections 1 and 5). */
import { v7 as uuid } from 'uuid'
import { effectiveScopes, permitsScope } from '../../../domain/accounts/roles.ts'
import type { Member } from '../../../domain/accounts/user.ts'
import {
  type ApiKey,
  ApiKeyError,
  activeKeysPerAccountMax,
  keysPerUserMax,
  overlapHoursMax,
} from '../../../domain/api-keys/api-key.ts'
import { type RevealedKey, rotatedNote } from '../../../domain/api-keys/api-keys.ts'
import { restrictableScopes } from '../../../domain/api-keys/workflow-restriction.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import {
  attribute,
  backLink,
  badge,
  copyable,
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
  selectField,
  table,
} from '../html.ts'
import {
  formId,
  orNotFound,
  type Page,
  PageForbidden,
  type PageHandler,
  type PageRequest,
  type PageResult,
} from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { queueCommand } from '../workflows/curl-commands.ts'

export const listApiKeys: PageHandler = async ({ account, user, query }, { apiKeys, users }) => {
  const [keys, names, limit] = await Promise.all([
    apiKeys.list(account.id),
    users.names(account.id),
    apiKeys.findLimitError(account.id, user.id),
  ])
  const active = keys.filter(({ expired }) => !expired).length
  const created = keys.filter(({ userId }) => userId === user.id).length
  const lead = `API keys authenticate your programs. ${active} of ${activeKeysPerAccountMax} keys in use. You have created ${created} of ${keysPerUserMax}.`
  const isEmpty = keys.length === 0
  const message = doneMessages.get(query.get('done') ?? '')
  const body = html`${heading('API Keys', { lead, ...(!limit && !isEmpty && { actions: createButton(user) }) })}
    ${message ? notice('good', message) : nothing} ${limit ? renderLimit(limit) : nothing}
    ${isEmpty ? noApiKeys(user) : renderKeyTable(user, keys, names, apiKeys.knownScopes)}`
  return apiKeyPage('API Keys', body)
}

export const showNewApiKey: PageHandler = (request, deps) => newApiKeyPage(request, deps, uuid())

export const createApiKey: PageHandler = async (request, deps) => {
  const { account, user, form, actor } = request
  const id = formId(form)
  try {
    const key = {
      id,
      accountId: account.id,
      userId: user.id,
      name: form.get('name') ?? '',
      scopes: parseScopes(form),
      workflowIds: parseWorkflowIds(form),
      expiresAt: parseExpiry(form.get('lifetime') ?? ''),
    }
    return createdPage('API key created', await deps.apiKeys.create(key, actor), account.id, deps)
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error
    if (error.about === 'repeated') return { location: '/api-keys?done=repeated' }
    if (error.about === 'holder') return { location: '/sign-in' }
    return newApiKeyPage(request, deps, id, error)
  }
}

async function newApiKeyPage(request: PageRequest, { apiKeys }: Dependencies, id: string, error?: ApiKeyError) {
  const { form, account, user } = request
  const isLimit = error?.about === 'userLimit' || error?.about === 'accountLimit'
  const limit = isLimit ? error : await apiKeys.findLimitError(account.id, user.id)
  const permitted = apiKeys.knownScopes.filter((scope) => permitsScope(user.role, scope))
  const isLimitedByRole = permitted.length < apiKeys.knownScopes.length
  const options = Object.entries(lifetimes).map(([value, title]) => ({ value, title }))
  const errorFor = (about: ApiKeyError['about']) => (error?.about === about ? error.message : undefined)
  const errors = { scopes: errorFor('scopes'), workflows: errorFor('workflows') }
  const disabled = account.scopesEnabled ? undefined : (errors.scopes ?? errors.workflows)
  const body = html`${backLink('/api-keys', 'API Keys')} ${heading('Create API key')}
    ${limit ? renderLimit(limit) : nothing}
    ${/* Scopes were disabled after the form was opened. */ disabled ? notice('bad', disabled) : nothing}
    <form method="post" action="/api-keys/new" class="card">
      ${isLimitedByRole ? html`<p>The key can do what your role permits: ${permitted.map((scope) => html`<code>${scope}</code> `)}</p>` : nothing}
      <input type="hidden" name="id" value="${id}" />
      ${inputField({ name: 'name', label: 'Name', value: form.get('name') ?? '', error: errorFor('name'), required: true, maxlength: 100, autofocus: true, hint: 'Describe where the key is used, such as “nightly import”.' })}
      ${selectField({ name: 'lifetime', label: 'Expiration', value: form.get('lifetime') ?? '', error: errorFor('lifetime'), options })}
      ${account.scopesEnabled ? renderScopeFields(form, permitted, errors) : nothing}
      <div class="buttons"><button>Create API key</button><a href="/api-keys">Cancel</a></div>
    </form>`
  return apiKeyPage('Create API key', body, error ? (isLimit ? 409 : 400) : 200)
}

/** `null` for full access. @throws {ApiKeyError} */
function parseScopes(form: URLSearchParams): string[] | null {
  const scopes = form.getAll('scope')
  if (form.get('permissions') === 'some') return scopes
  if (scopes.length === 0) return null
  // Selected scopes contradict full access; granting it would be more than the user may intend.
  throw new ApiKeyError('scopes', 'Choose “Selected scopes only”, or clear the selected scopes.')
}

/** `null` for all workflows. */
function parseWorkflowIds(form: URLSearchParams): string[] | null {
  const ids = (form.get('workflows') ?? '').split(/[\s,]+/).filter((id) => id !== '')
  return ids.length > 0 ? ids : null
}

/** @throws {ApiKeyError} for a lifetime that the form does not offer. */
function parseExpiry(lifetime: string): number | null {
  if (!Object.hasOwn(lifetimes, lifetime)) throw new ApiKeyError('lifetime', 'Choose one of the listed lifetimes.')
  const days = Number(lifetime)
  return days === 0 ? null : Date.now() + days * 24 * 60 * 60 * 1000
}

export const showApiKeyRename: PageHandler = async (request, deps) =>
  renameKeyPage((await findOwnKey(request, deps)).name)

export const renameApiKey: PageHandler = async (request, deps) => {
  const key = await findOwnKey(request, deps)
  const name = request.form.get('name') ?? ''
  try {
    orNotFound(await deps.apiKeys.rename(request.account.id, key.id, name, request.actor))
    return { location: '/api-keys?done=renamed' }
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error
    return renameKeyPage(name, error.message, 400)
  }
}

function renameKeyPage(name: string, error?: string, status = 200): Page {
  const title = 'Rename API key'
  return apiKeyPage(title, renamePage(title, { path: '/api-keys', title: 'API Keys' }, name, error), status)
}

export const confirmRotation: PageHandler = async (request, deps) =>
  apiKeyPage('Rotate API key', renderRotation(await findOwnKey(request, deps), uuid()))

export const rotateApiKey: PageHandler = async (request, deps) => {
  const { account, params, form, actor } = request
  const id = params.id ?? ''
  const newId = formId(form)
  // Not `findOwnKey`: when the form is submitted again, the old key is gone, which is not an error.
  const key = await deps.apiKeys.get(account.id, id)
  if (key) requireCreator(request, key)
  try {
    const rotated = orNotFound(await deps.apiKeys.rotate(account.id, id, newId, actor, parseOverlap(form)))
    return createdPage('API key rotated', rotated, account.id, deps)
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error
    if (error.about === 'repeated' || !key) return { location: '/api-keys?done=repeated' }
    const status = error.about === 'overlap' ? 400 : 409
    return apiKeyPage('Rotate API key', renderRotation(key, newId, form.get('overlap') ?? '', error), status)
  }
}

/** In hours; `NaN` for anything else than a number. */
function parseOverlap(form: URLSearchParams): number {
  const text = form.get('overlap') ?? '0'
  return /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN
}

export const confirmApiKeyDeletion: PageHandler = async (request, deps) => {
  const key = await findDeletableKey(request, deps)
  const creator = (await deps.users.names(request.account.id)).get(key.userId) ?? ''
  return apiKeyPage('Delete API key', renderApiKeyDeletion(key, creator))
}

export const deleteApiKey: PageHandler = async (request, deps) => {
  const key = await findDeletableKey(request, deps)
  orNotFound(await deps.apiKeys.delete(request.account.id, key.id, request.actor))
  return { location: '/api-keys?done=deleted' }
}

async function findKey({ account, params }: PageRequest, { apiKeys }: Dependencies): Promise<ApiKey> {
  return orNotFound(await apiKeys.get(account.id, params.id ?? ''))
}

async function findOwnKey(request: PageRequest, deps: Dependencies): Promise<ApiKey> {
  const key = await findKey(request, deps)
  requireCreator(request, key)
  return key
}

function requireCreator({ user }: PageRequest, key: ApiKey): void {
  if (key.userId !== user.id) throw new PageForbidden('Only the user who created an API key can rename or rotate it.')
}

/** Admins can delete every key of the account. */
async function findDeletableKey(request: PageRequest, deps: Dependencies): Promise<ApiKey> {
  const key = await findKey(request, deps)
  if (key.userId !== request.user.id && request.user.role !== 'admin') {
    throw new PageForbidden('Only the user who created an API key and admins can delete it.')
  }
  return key
}

function createdPage(title: string, key: RevealedKey, accountId: string, deps: Dependencies): PageResult {
  const { addresses } = deps
  const workflows = deps.workflows.current(accountId)
  return apiKeyPage(title, renderCreatedApiKey(key, exampleCommand()))

  /** Queues a run with the key. `undefined` when its scopes do not allow that, or no workflow accepts its example. */
  function exampleCommand(): string | undefined {
    if (key.scopes?.includes('runs:write') === false) return undefined
    for (const { id, variables } of workflows.list()) {
      if (key.workflowIds?.includes(id) === false) continue
      const example = exampleVariables(variables)
      const checked = workflows.checkVariables(id, structuredClone(example))
      if (!('errors' in checked)) return queueCommand(addresses().executionUrl, id, example, { key: key.value })
    }
    return undefined
  }
}

function apiKeyPage(title: string, body: Page['body'], status = 200): Page {
  return { title, tab: 'api-keys', body, status }
}

// Templates of the pages of API keys.

/** The lifetimes to choose from, by their number of days. */
const lifetimes: Record<string, string> = {
  '': 'No expiration',
  '7': '7 days',
  '30': '30 days',
  '90': '90 days',
  '365': '1 year',
}

const doneMessages = new Map([
  ['renamed', 'API key renamed.'],
  ['deleted', 'API key deleted. Programs that used it no longer have access.'],
  ['repeated', 'This key was already created. Its value is shown only once: if you did not save it, rotate the key.'],
])

const createButton = (user: Member) =>
  may(user, 'GET /api-keys/new') ? html`<a class="button" href="/api-keys/new">Create API key</a>` : html``

const noApiKeys = (user: Member) =>
  emptyState(
    'No API keys',
    html`<p>Create an API key so that your programs can queue runs.</p><p>${createButton(user)}</p>`,
  )

function renderKeyTable(user: Member, keys: ApiKey[], names: Map<string, string>, known: readonly string[]): Html {
  const columns = ['Name', 'Key', 'Scopes', 'Created by', 'Created', 'Last used', 'Expires', 'Status', '']
  const rows = keys.map((key) => {
    const isOwn = key.userId === user.id
    const rotate = html`<a href="/api-keys/${key.id}/rotate" aria-label="Rotate ${key.name}">Rotate</a>`
    const change = html`<a href="/api-keys/${key.id}/rename" aria-label="Rename ${key.name}">Rename</a>
      ${may(user, 'GET /api-keys/:id/rotate') ? rotate : nothing}`
    const remove = html`<a class="danger" href="/api-keys/${key.id}/delete" aria-label="Delete ${key.name}">Delete</a>`
    return [
      html`<strong>${key.name}</strong>`,
      html`<code>${key.prefix}…</code>`,
      renderPermissions(key, known),
      isOwn ? 'You' : (names.get(key.userId) ?? ''),
      time(key.createdAt),
      time(key.lastUsedAt),
      time(key.expiresAt),
      key.expired ? badge('quiet', 'Expired') : badge('good', 'Active'),
      html`<span class="row-actions">${isOwn ? change : nothing}${isOwn || user.role === 'admin' ? remove : nothing}</span>`,
    ]
  })
  return table(columns, rows, 'API keys')
}

/** What the key can do now: its creator's role may permit less than it was created with. */
function renderPermissions({ scopes: given, role, workflowIds }: ApiKey, known: readonly string[]): Html {
  const scopes = effectiveScopes(given, role ?? undefined, known)
  if (scopes?.length === 0) return html`<span class="muted">none: its creator has no role that permits them</span>`
  if (scopes === null) return html`<span class="muted">all</span>`
  const codes = (texts: readonly string[]) => texts.map((text) => html`<code>${text}</code> `)
  if (workflowIds === null) return html`${codes(scopes)}`
  return html`<div class="stack"><span>${codes(scopes)}</span><span>for ${codes(workflowIds)}</span></div>`
}

function renderLimit(limit: ApiKeyError): Html {
  const advice =
    limit.about === 'userLimit'
      ? html`<strong>You have reached your limit of ${keysPerUserMax} API keys</strong>, including expired ones. Delete a
          key that you no longer need, or rotate a key to replace its value. ${rotatedNote}`
      : html`<strong>This account has reached its limit of ${activeKeysPerAccountMax} active API keys.</strong> Delete a key,
          or ask its creator or an admin to delete one. ${rotatedNote}`
  return notice('warning', advice)
}

function renderScopeFields(
  form: URLSearchParams,
  knownScopes: readonly string[],
  errors: { scopes: string | undefined; workflows: string | undefined },
): Html {
  const { scopes: error } = errors
  const isLimited = form.get('permissions') === 'some'
  const selected = form.getAll('scope')
  const boxes = knownScopes.map(
    (scope) =>
      html`<label><input type="checkbox" name="scope" value="${scope}" ${attribute('checked', selected.includes(scope))} /><code>${scope}</code></label>`,
  )
  return html`<fieldset ${error ? html`aria-describedby="scopes-error"` : nothing}>
    <legend>Permissions</legend>
    <label><input type="radio" name="permissions" value="all" ${attribute('checked', !isLimited)} />Full access</label>
    <label><input type="radio" name="permissions" value="some" ${attribute('checked', isLimited)} />Selected scopes only</label>
    <div class="choices">${boxes}</div>
    ${error ? html`<small id="scopes-error" class="error">${error}</small>` : nothing}
    ${inputField({ name: 'workflows', label: 'Only for these workflows', value: form.get('workflows') ?? '', error: errors.workflows, hint: workflowsHint })}
  </fieldset>`
}

const workflowsHint = html`Optional: ids, separated by commas. The key then sees and executes runs of no others. Its scopes may be ${restrictableScopes.join(', ')}.`

/** The only page that contains the value. */
function renderCreatedApiKey(key: RevealedKey, command: string | undefined): Html {
  const usage =
    command &&
    html`<h2>Try it</h2>
      <p>This command queues a run with example variables. Each workflow’s page has its own command.</p>
      ${copyable('key-command', command, { once: true, label: 'Copy command' })}`
  return html`${backLink('/api-keys', 'API Keys')} ${heading(`Save the API key “${key.name}”`)}
    ${notice('warning', html`<strong>Copy this key now.</strong> You won’t be able to see it again.`)}
    <section class="card">
      <h2>Key</h2>
      ${copyable('key-value', key.value, { once: true, label: 'Copy key' })} ${usage ?? nothing}
    </section>
    <p><a class="button secondary" href="/api-keys">Done</a></p>`
}

function renderRotation(key: ApiKey, newId: string, overlap = '0', error?: ApiKeyError): Html {
  const overlapField = {
    name: 'overlap',
    label: 'Hours during which the old value still works',
    hint: `From 0 to ${overlapHoursMax}. With 0, programs that use the old value lose access immediately. Otherwise both values work, and both count as keys until you delete the old one.`,
    error: error?.about === 'overlap' ? error.message : undefined,
  }
  const input = (common: Html) =>
    html`<input type="number" ${common} value="${overlap}" min="0" max="${overlapHoursMax}" step="1" required />`
  return html`${backLink('/api-keys', 'API Keys')} ${heading(`Rotate “${key.name}”?`)}
    ${error && error.about !== 'overlap' ? notice('bad', error.message) : nothing}
    <form method="post" class="card">
      <input type="hidden" name="id" value="${newId}" />
      <p>You get a new value with the same name, scopes, workflows and lifetime, in place of <code>${key.prefix}…</code>.</p>
      ${facts([['Last used', renderLastUse(key)]])} ${labelledField(overlapField, input)}
      <div class="buttons"><button>Rotate key</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

function renderApiKeyDeletion(key: ApiKey, creator: string): Html {
  return html`${backLink('/api-keys', 'API Keys')} ${heading(`Delete “${key.name}”?`)}
    <form method="post" class="card">
      <p>Programs that use this key lose access immediately. This cannot be undone.</p>
      ${facts([
        ['Key', html`<code>${key.prefix}…</code>`],
        ['Created by', creator],
        ['Last used', renderLastUse(key)],
      ])}
      <div class="buttons"><button class="danger">Delete key</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

function renderLastUse({ lastUsedAt, lastUsedBy }: ApiKey): Html {
  return html`${time(lastUsedAt)}${lastUsedBy === null ? nothing : html` by <code>${lastUsedBy}</code>`}`
}
