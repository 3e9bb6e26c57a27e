/** The tab "API Keys": making, naming, rotating and deleting them (interface, sections 1 and 5). */
import { v7 as uuid } from 'uuid'
import { type ApiKey, ApiKeyError } from '../../../domain/api-keys/api-key.ts'
import type { RevealedKey } from '../../../domain/api-keys/api-keys.ts'
import type { Parts } from '../dependencies.ts'
import { formId, found, type Handler, type Page, PageForbidden, type Visit } from '../visit.ts'
import { queueCommand } from '../workflows/curl.ts'
import { exampleOf } from '../workflows/example.ts'
import * as views from './api-key-views.ts'
import { expiryOf } from './lifetimes.ts'

export function list(parts: Parts): Handler {
  return async (visit) => {
    const [keys, names] = await Promise.all([parts.apiKeys.list(visit.account.id), parts.users.names(visit.account.id)])
    const limit = await parts.apiKeys.findLimitError(visit.account.id, visit.user.id)
    const done = visit.query.get('done') ?? ''
    return page('API Keys', views.listView({ visit, keys, names, limit, done }))
  }
}

export function create(parts: Parts): Handler {
  return async (visit) => newPage(parts, visit, { id: uuid() })
}

export function submitNew(parts: Parts): Handler {
  return async (visit) => {
    const { account, user, form, actor } = visit
    const id = formId(form)
    try {
      const key = {
        id,
        accountId: account.id,
        userId: user.id,
        name: form.get('name') ?? '',
        scopes: scopesOf(form),
        expiresAt: expiryOf(form.get('lifetime') ?? ''),
      }
      const made = await parts.apiKeys.create(key, actor)
      return page('API key created', views.revealedView(made, commandWith(made, parts)))
    } catch (error) {
      if (!(error instanceof ApiKeyError)) throw error
      if (error.about === 'repeated') return { location: '/api-keys?done=repeated' }
      if (error.about === 'holder') return { location: '/sign-in' }
      return newPage(parts, visit, { id, refused: error })
    }
  }
}

export function rename(parts: Parts): Handler {
  return async (visit) => page('Rename API key', views.renameView(await ownKey(parts, visit)))
}

export function submitName(parts: Parts): Handler {
  return async (visit) => {
    const key = await ownKey(parts, visit)
    const name = visit.form.get('name') ?? ''
    try {
      found(await parts.apiKeys.rename(visit.account.id, key.id, name, visit.actor))
      return { location: '/api-keys?done=renamed' }
    } catch (error) {
      if (!(error instanceof ApiKeyError)) throw error
      return page('Rename API key', views.renameView({ ...key, name }, error.message), 400)
    }
  }
}

export function rotate(parts: Parts): Handler {
  return async (visit) => page('Rotate API key', views.rotateView(await ownKey(parts, visit), uuid()))
}

export function submitRotation(parts: Parts): Handler {
  return async (visit) => {
    const newId = formId(visit.form)
    // Not `ownKey`: when this form is sent again, the key that it was about is gone, and that is no error.
    const key = await parts.apiKeys.get(visit.account.id, visit.params.id ?? '')
    if (key) refuseOthers(visit, key)
    try {
      const made = found(await parts.apiKeys.rotate(visit.account.id, visit.params.id ?? '', newId, visit.actor))
      return page('API key rotated', views.revealedView(made, commandWith(made, parts)))
    } catch (error) {
      if (!(error instanceof ApiKeyError)) throw error
      if (error.about === 'repeated' || !key) return { location: '/api-keys?done=repeated' }
      return page('Rotate API key', views.rotateView(key, newId, error.message), 409)
    }
  }
}

export function remove(parts: Parts): Handler {
  return async (visit) => {
    const key = await deletableKey(parts, visit)
    const holder = (await parts.users.names(visit.account.id)).get(key.userId) ?? ''
    return page('Delete API key', views.deleteView(key, holder))
  }
}

export function submitDeletion(parts: Parts): Handler {
  return async (visit) => {
    const key = await deletableKey(parts, visit)
    found(await parts.apiKeys.delete(visit.account.id, key.id, visit.actor))
    return { location: '/api-keys?done=deleted' }
  }
}

async function newPage(parts: Parts, visit: Visit, { id, refused }: { id: string; refused?: ApiKeyError }) {
  const limit = await parts.apiKeys.findLimitError(visit.account.id, visit.user.id)
  const { knownScopes } = parts.apiKeys
  const isLimit = refused?.about === 'userLimit' || refused?.about === 'accountLimit'
  const status = refused ? (isLimit ? 409 : 400) : 200
  return page(
    'Create an API key',
    views.newView({ visit, id, limit: isLimit ? refused : limit, refused, knownScopes }),
    status,
  )
}

/** The scopes that were chosen; `null` for everything. @throws {ApiKeyError} */
function scopesOf(form: URLSearchParams): string[] | null {
  const scopes = form.getAll('scope')
  if (form.get('permissions') === 'some') return scopes
  if (scopes.length === 0) return null
  // Whoever has ticked some does not mean a key that may do everything.
  throw new ApiKeyError('scopes', 'Choose “Only these scopes” for those that are ticked, or tick none.')
}

async function keyOf(parts: Parts, { account, params }: Visit): Promise<ApiKey> {
  return found(await parts.apiKeys.get(account.id, params.id ?? ''))
}

/** A key that the visitor holds: nobody else names it or learns its new value. */
async function ownKey(parts: Parts, visit: Visit): Promise<ApiKey> {
  const key = await keyOf(parts, visit)
  refuseOthers(visit, key)
  return key
}

function refuseOthers(visit: Visit, key: ApiKey): void {
  if (key.userId === visit.user.id) return
  throw new PageForbidden('Only the user who has created an API key may rename or rotate it.')
}

/** Owners may delete every key of the account. */
async function deletableKey(parts: Parts, visit: Visit): Promise<ApiKey> {
  const key = await keyOf(parts, visit)
  if (key.userId !== visit.user.id && visit.user.role !== 'owner') {
    throw new PageForbidden('Only the user who has created an API key and owners may delete it.')
  }
  return key
}

/** What queues a run with the key, when it may, and there is a workflow that takes its example. */
function commandWith({ value, scopes }: RevealedKey, { workflows, addresses }: Parts): string | undefined {
  if (scopes?.includes('runs:write') === false) return undefined
  for (const { id, variables } of workflows.list()) {
    const example = exampleOf(variables)
    const checked = workflows.checkVariables(id, structuredClone(example))
    if (!('errors' in checked)) return queueCommand(addresses().executionUrl, id, example, { key: value })
  }
  return undefined
}

function page(title: string, body: Page['body'], status = 200): Page {
  return { title, tab: 'api-keys', body, status }
}
