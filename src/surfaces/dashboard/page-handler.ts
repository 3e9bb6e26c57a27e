/** What the handlers of pages receive and return. */
import type { Request, Response } from 'express'
import { v7 as uuid, validate } from 'uuid'
import type { Reserve, TenantRequest } from '../../contract/tenant-limits.ts'
import type { Account } from '../../domain/accounts/accounts.ts'
import type { Role } from '../../domain/accounts/roles.ts'
import type { Session } from '../../domain/accounts/sessions.ts'
import type { Member, User } from '../../domain/accounts/user.ts'
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
  user: Member
  /** The account of the environment that the session shows. `ownerId` is that of the user. */
  account: Account
  /** All environments of the user's account, the first one first. */
  environments: readonly Account[]
  /** The user as the audit log records them. */
  actor: Actor
  session: Session
  address: string
  /** Goes on with another session after a change of the user's credentials, which has ended this one. */
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

/** The request is not allowed. */
export class PageForbidden extends Error {}

/** The user's role does not allow the request. */
export class RoleRequired extends PageForbidden {
  /** @param role the user's; `undefined` when it has just changed. */
  constructor(needed: Role, role?: Role) {
    const yours = role ? ` Your role is ${role}.` : ''
    super(`This needs the role ${needed}.${yours} An admin of the account can change it under Settings, Members.`)
  }
}

export function orNotFound<Value>(value: Value | undefined | false): Value {
  if (value === undefined || value === false) throw new PageNotFound()
  return value
}

/** The id of what the form creates, so that submitting it twice creates one; a new id for a new form. */
export function formId(form: URLSearchParams): string {
  const id = form.get('id') ?? ''
  return validate(id) ? id.toLowerCase() : uuid()
}
