/** What the handler of a page gets and gives. */
import { v7 as uuid, validate } from 'uuid'
import type { Account } from '../../domain/accounts/accounts.ts'
import { toActor, type User } from '../../domain/accounts/user.ts'
import type { Actor } from '../../domain/audit-log/audit-log.ts'
import type { SentFile } from './forms.ts'
import type { Html } from './html.ts'

export type Tab = 'overview' | 'runs' | 'workflows' | 'browser-contexts' | 'api-keys' | 'settings' | 'profile'

/** A request of somebody who is signed in. Whatever a handler reads or changes, it does so within `account`. */
export interface Visit {
  user: User
  account: Account
  /** The user, as the audit log names whoever acts. */
  actor: Actor
  /** Whether a link has signed the user in, and not a password. */
  byLink: boolean
  /** From now on the session is as one that a password has opened. */
  signInAnew(): Promise<void>
  sessionId: string
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of the form that was sent. */
  form: URLSearchParams
  /** The file that was sent, where the page takes one. */
  file: SentFile
}

export interface Page {
  title: string
  tab: Tab
  body: Html
  status?: number
}

/** A page, or where to go instead. */
export type Reply = Page | { location: string }

export type Handler = (visit: Visit) => Promise<Reply>

export function visitOf(parts: Omit<Visit, 'actor'>): Visit {
  return { ...parts, actor: toActor(parts.user) }
}

/** There is no such thing in the visitor's account; whether it is in another's is not told. */
export class PageNotFound extends Error {}

/** The visitor's role does not permit it. */
export class PageForbidden extends Error {}

/** The form's own id for what it makes, so that sending it again makes nothing more; a new one for a new form. */
export function formId(form: URLSearchParams): string {
  const id = form.get('id') ?? ''
  return validate(id) ? id.toLowerCase() : uuid()
}

/** Lets owners through. */
export function ofOwners<More extends unknown[], Result>(
  handler: (visit: Visit, ...more: More) => Promise<Result>,
): (visit: Visit, ...more: More) => Promise<Result> {
  return async (visit, ...more) => {
    if (visit.user.role !== 'owner') throw new PageForbidden()
    return handler(visit, ...more)
  }
}

/** @throws {PageNotFound} when there is nothing. */
export function found<Thing>(thing: Thing | undefined | false): Thing {
  if (thing === undefined || thing === false) throw new PageNotFound()
  return thing
}
