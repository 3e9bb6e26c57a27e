/**
 * The tab "Browser Contexts": create, rename, delete, upload storage states, restore versions. Every user of the account
 * can do all of this.
 */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { ContextInUse } from '../../../domain/browser-contexts/commit-version.ts'
import { nameError } from '../../../domain/display-names.ts'
import type { Dependencies } from '../dependencies.ts'
import { type Html, renamePage } from '../html.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { readQueuerLabels } from '../runs/run-labels.ts'
import * as forms from './context-form-templates.ts'
import { inUseMessage } from './context-labels.ts'
import { renderContext, renderContextList } from './context-templates.ts'
import { fileTooLarge, readStorageState } from './storage-state-file.ts'

const contextsPerPage = 50

const nameTaken = 'Another browser context has this name. Enter a different name.'

export const listContexts: PageHandler = async ({ account, query }, { browserContexts }) => {
  const cursor = query.get('cursor') ?? undefined
  const list = await browserContexts.list(account.id, { limit: contextsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!list) return { location: '/browser-contexts' }
  const isFirstPage = cursor === undefined
  const body = renderContextList({ ...list, isFirstPage, done: query.get('done') ?? '' })
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
  return contextTab('Create browser context', forms.renderNewContext(name, error), status)
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
  const body = renderContext({
    context,
    versions: orNotFound(versions),
    queuerLabel,
    workflows: deps.workflows
      .current(account.id)
      .list()
      .filter(({ usesBrowser }) => usesBrowser),
    addresses: deps.addresses(),
    done: query.get('done') ?? '',
    uploadError: upload?.error,
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
  contextTab('Delete browser context', forms.renderContextDeletion(await findContext(request, deps)))

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
  const error = inUse && inUseMessage(inUse.heldByRunId)
  const body = forms.renderRestore({ context, version, queuerLabel, error })
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
