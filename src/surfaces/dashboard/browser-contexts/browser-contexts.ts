/**
 * The tab "Browser Contexts": making, naming and deleting them, filling them, and going back to earlier versions. Every
 * user of the account may do all of it.
 */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { ContextInUse, Version } from '../../../domain/browser-contexts/context-versions.ts'
import { nameError } from '../../../domain/display-names.ts'
import type { Parts } from '../dependencies.ts'
import type { Html } from '../html.ts'
import { queuersOf } from '../runs/queuers.ts'
import { found, type Handler, type Page, type Visit } from '../visit.ts'
import { heldSentence } from './context-labels.ts'
import { contextView } from './context-view.ts'
import * as views from './form-views.ts'
import { listView } from './list-view.ts'
import { readState, tooLarge } from './state-file.ts'

const contextsPerPage = 50

const nameTaken = 'There is a browser context of this name already. Choose another one.'

export function list({ browserContexts }: Parts): Handler {
  return async ({ account, query }) => {
    const cursor = query.get('cursor') ?? undefined
    const list = await browserContexts.list(account.id, { limit: contextsPerPage, cursor })
    // The cursor of another list, as when somebody has changed the address by hand.
    if (!list) return { location: '/browser-contexts' }
    const isFirstPage = cursor === undefined
    return page('Browser Contexts', listView({ ...list, isFirstPage, done: query.get('done') ?? '' }))
  }
}

export function create(): Handler {
  return async () => page('Create a browser context', views.newView(''))
}

export function submitNew({ browserContexts }: Parts): Handler {
  return async ({ account, form, actor }) => {
    const name = nameIn(form)
    const fault = name === '' ? undefined : nameError(name)
    const refuse = (error: string, status: number) =>
      page('Create a browser context', views.newView(name, error), status)
    if (fault !== undefined) return refuse(fault, 400)
    const made = await browserContexts.create(account.id, name === '' ? undefined : name, actor)
    return made ? to(made.id, 'created') : refuse(nameTaken, 409)
  }
}

export function show(parts: Parts): Handler {
  return (visit) => contextPage(parts, visit)
}

export function upload(parts: Parts): Handler {
  return async (visit) => {
    const { account, user, actor, file } = visit
    const { id } = await contextOf(parts, visit)
    if (file === 'none') return contextPage(parts, visit, { fault: 'Choose a file.', status: 400 })
    if (file === 'tooLarge') return contextPage(parts, visit, { fault: tooLarge, status: 413 })
    const read = readState(file)
    if ('fault' in read) return contextPage(parts, visit, { fault: read.fault, status: 400 })
    const writer = { userId: user.id }
    const replaced = found(await parts.contextVersions.replace(account.id, id, read.state, writer, null, actor))
    if (!isHeld(replaced)) return to(id, 'uploaded')
    return contextPage(parts, visit, { fault: heldSentence(replaced.heldByRunId), status: 409 })
  }
}

export function rename(parts: Parts): Handler {
  return async (visit) => {
    const context = await contextOf(parts, visit)
    return page('Rename browser context', views.renameView(context, context.name))
  }
}

export function submitName(parts: Parts): Handler {
  return async (visit) => {
    const context = await contextOf(parts, visit)
    const name = nameIn(visit.form)
    const refuse = (error: string, status: number) =>
      page('Rename browser context', views.renameView(context, name, error), status)
    const fault = nameError(name)
    if (fault !== undefined) return refuse(fault, 400)
    const renamed = await parts.browserContexts.rename(visit.account.id, context.id, name, visit.actor)
    if (renamed === 'nameTaken') return refuse(nameTaken, 409)
    return to(found(renamed !== 'noSuchContext' && renamed).id, 'renamed')
  }
}

export function remove(parts: Parts): Handler {
  return async (visit) => page('Delete browser context', views.deleteView(await contextOf(parts, visit)))
}

export function submitDeletion({ browserContexts }: Parts): Handler {
  return async ({ account, params, actor }) => {
    found(await browserContexts.delete(account.id, params.id ?? '', actor))
    return { location: '/browser-contexts?done=deleted' }
  }
}

export function restore(parts: Parts): Handler {
  return (visit) => restorePage(parts, visit)
}

export function submitRestoration(parts: Parts): Handler {
  return async (visit) => {
    const { account, user, actor } = visit
    const context = await contextOf(parts, visit)
    const { number } = await olderVersion(parts, visit)
    const writer = { userId: user.id }
    const restored = found(await parts.contextVersions.restore(account.id, context.id, number, writer, actor))
    return isHeld(restored) ? restorePage(parts, visit, restored) : to(context.id, 'restored')
  }
}

async function contextPage(parts: Parts, visit: Visit, refusal?: { fault: Html | string; status: number }) {
  const { account, query } = visit
  const [context, versions, userOf] = await Promise.all([
    contextOf(parts, visit),
    parts.contextVersions.list(account.id, visit.params.id ?? ''),
    queuersOf(parts, account.id),
  ])
  const body = contextView({
    context,
    versions: found(versions),
    userOf,
    workflows: parts.workflows.list().filter(({ usesBrowser }) => usesBrowser),
    addresses: parts.addresses(),
    done: query.get('done') ?? '',
    fault: refusal?.fault,
  })
  return page(context.name, body, refusal?.status)
}

async function restorePage(parts: Parts, visit: Visit, held?: ContextInUse): Promise<Page> {
  const [context, version, userOf] = await Promise.all([
    contextOf(parts, visit),
    olderVersion(parts, visit),
    queuersOf(parts, visit.account.id),
  ])
  const fault = held && heldSentence(held.heldByRunId)
  return page('Restore a version', views.restoreView({ context, version, userOf, fault }), held ? 409 : 200)
}

async function contextOf({ browserContexts }: Parts, { account, params }: Visit): Promise<BrowserContext> {
  return found(await browserContexts.get(account.id, params.id ?? ''))
}

/** The version that the address names; the current one need not be restored. */
async function olderVersion({ contextVersions }: Parts, { account, params }: Visit): Promise<Version> {
  const versions = found(await contextVersions.list(account.id, params.id ?? ''))
  return found(versions.find(({ number, isCurrent }) => String(number) === params.version && !isCurrent))
}

function isHeld(answer: Version | ContextInUse): answer is ContextInUse {
  return 'heldByRunId' in answer
}

function nameIn(form: URLSearchParams): string {
  return (form.get('name') ?? '').trim()
}

function to(id: string, done: string): { location: string } {
  return { location: `/browser-contexts/${id}?done=${done}` }
}

function page(title: string, body: Html, status = 200): Page {
  return { title, tab: 'browser-contexts', body, status }
}
