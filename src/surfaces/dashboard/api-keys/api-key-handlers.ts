/** The tab "API Keys": list, create, rename, rotate and delete keys (interface, sections 1 and 5). */
import { v7 as uuid } from 'uuid'
import { type ApiKey, ApiKeyError } from '../../../domain/api-keys/api-key.ts'
import type { RevealedKey } from '../../../domain/api-keys/api-keys.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Dependencies } from '../dependencies.ts'
import { renamePage } from '../html.ts'
import {
  formId,
  orNotFound,
  type Page,
  PageForbidden,
  type PageHandler,
  type PageRequest,
  type PageResult,
} from '../page-handler.ts'
import { queueCommand } from '../workflows/curl-commands.ts'
import * as templates from './api-key-templates.ts'
import { lifetimes } from './api-key-templates.ts'

export const listApiKeys: PageHandler = async (request, { apiKeys, users }) => {
  const { account, user, query } = request
  const [keys, names, limit] = await Promise.all([
    apiKeys.list(account.id),
    users.names(account.id),
    apiKeys.findLimitError(account.id, user.id),
  ])
  const body = templates.renderApiKeyList({ user, keys, names, limit, done: query.get('done') ?? '' })
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
  const { knownScopes } = apiKeys
  const body = templates.renderNewApiKey({ form, account, id, limit, error, knownScopes })
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
  apiKeyPage('Rotate API key', templates.renderRotation(await findOwnKey(request, deps), uuid()))

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
    return apiKeyPage('Rotate API key', templates.renderRotation(key, newId, form.get('overlap') ?? '', error), status)
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
  return apiKeyPage('Delete API key', templates.renderApiKeyDeletion(key, creator))
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

/** Owners can delete every key of the account. */
async function findDeletableKey(request: PageRequest, deps: Dependencies): Promise<ApiKey> {
  const key = await findKey(request, deps)
  if (key.userId !== request.user.id && request.user.role !== 'owner') {
    throw new PageForbidden('Only the user who created an API key and owners can delete it.')
  }
  return key
}

function createdPage(title: string, key: RevealedKey, accountId: string, deps: Dependencies): PageResult {
  const { addresses } = deps
  const workflows = deps.workflows.current(accountId)
  return apiKeyPage(title, templates.renderCreatedApiKey(key, exampleCommand()))

  /** Queues a run with the key. `undefined` when its scopes do not allow that, or no workflow accepts its example. */
  function exampleCommand(): string | undefined {
    if (key.scopes?.includes('runs:write') === false) return undefined
    for (const { id, variables } of workflows.list()) {
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
