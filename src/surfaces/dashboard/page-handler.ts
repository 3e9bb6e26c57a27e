/** What the handlers of pages receive and return. */
import type { Request, Response } from 'express'
import { v7 as uuid, validate } from 'uuid'
import type { Reserve, TenantRequest } from '../../contract/tenant-limits.ts'
import type { Account } from '../../domain/accounts/accounts.ts'
import type { Session } from '../../domain/accounts/sessions.ts'
import type { User } from '../../domain/accounts/user.ts'
import type { Actor } from '../../domain/audit-log/audit-log.ts'
import type { Dependencies } from './dependencies.ts'
import type { UploadedFile } from './form-body.ts'
import type { Html, Tone } from './html.ts'

export type Tab =
  | 'overview'
  | 'runs'
  | 'waits'
  | 'workflows'
  | 'browser-contexts'
  | 'schedules'
  | 'webhooks'
  | 'api-keys'
  | 'settings'
  | 'profile'
  | 'go-to'

/** A request of a signed-in user. Handlers read and change only what belongs to `account`. */
export interface PageRequest {
  user: User
  account: Account
  /** The user as the audit log records them. */
  actor: Actor
  session: Session
  address: string
  /** Starts another session after a change of the user's credentials, which has ended this one. */
  renewSession(user: User, byLink: boolean): Promise<void>
  params: Record<string, string>
  query: URLSearchParams
  form: URLSearchParams
  /** The submitted file, on pages that accept one. */
  file: UploadedFile
  /** Bounds the files that the account's requests have in memory: await it before reading one. */
  reserve: Reserve
  tenant: TenantRequest | undefined
}

export interface Page {
  title: string
  /** Colours a dot on the tab's icon. */
  icon?: Tone
  tab: Tab
  body: Html
  /** 200 by default. */
  status?: number
}

export type PageResult = Page | { location: string }

export type PageHandler = (request: PageRequest, deps: Dependencies) => Promise<PageResult>

/** Writes the response itself: downloads and event streams. */
export type StreamHandler = (
  page: PageRequest,
  deps: Dependencies,
  request: Request,
  response: Response,
) => Promise<void>

/** The item does not exist in the user's account. The response is the same when another account has it. */
export class PageNotFound extends Error {
  constructor(message = 'This item doesn’t exist in your account, or it was deleted.') {
    super(message)
  }
}

/** The user's role does not allow the request. */
export class PageForbidden extends Error {
  constructor(message = 'Only owners can view this page or make this change.') {
    super(message)
  }
}

export function orNotFound<Value>(value: Value | undefined | false): Value {
  if (value === undefined || value === false) throw new PageNotFound()
  return value
}

/** @throws {PageForbidden} from the returned handler, when the user is not an owner. */
export function ownersOnly<Rest extends unknown[], Result>(
  handler: (page: PageRequest, ...rest: Rest) => Promise<Result>,
): (page: PageRequest, ...rest: Rest) => Promise<Result> {
  return async (page, ...rest) => {
    if (page.user.role !== 'owner') throw new PageForbidden()
    return handler(page, ...rest)
  }
}

/** The id of what the form creates, so that submitting it twice creates one; a new id for a new form. */
export function formId(form: URLSearchParams): string {
  const id = form.get('id') ?? ''
  return validate(id) ? id.toLowerCase() : uuid()
}
