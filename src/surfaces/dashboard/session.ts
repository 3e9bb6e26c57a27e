/** Who is signed in: express-session over the sessions of the store. */
import type { RequestHandler } from 'express'
import session from 'express-session'
import type { Sessions } from '../../domain/accounts/sessions.ts'
import type { User } from '../../domain/accounts/user.ts'

declare module 'express-session' {
  interface SessionData {
    userId: string
    /** Whether a link has signed the user in: they may then choose a password without knowing the present one. */
    byLink: boolean
  }
}

/** Whoever has signed in is asked again after a week. */
const lifetimeMilliseconds = 7 * 24 * 60 * 60 * 1000

export interface SessionOptions {
  sessions: Sessions
  /** The first signs the cookies; those that the others have signed are taken as well. */
  secrets: string[]
  /** Whether readers come by https: the cookie is then bound to the host and sent by https alone. */
  secure: boolean
  /** Cookies do not know of ports: this keeps those of several dashboards on one host apart. */
  port: number
}

export function sessionHandler({ sessions, secrets, secure, port }: SessionOptions): RequestHandler {
  return session({
    name: secure ? '__Host-session' : `execution-service-${port}`,
    secret: secrets,
    store: new SessionStore(sessions),
    resave: false,
    saveUninitialized: false,
    // Whoever set DASHBOARD_URL to https says that readers come by it, whatever the proxy sends.
    proxy: secure,
    cookie: { httpOnly: true, sameSite: 'lax', path: '/', secure, maxAge: lifetimeMilliseconds },
  })
}

type Callback<Value = void> = (error?: unknown, value?: Value) => void

class SessionStore extends session.Store {
  readonly #sessions: Sessions

  constructor(sessions: Sessions) {
    super()
    this.#sessions = sessions
  }

  override get(id: string, done: Callback<session.SessionData | null>): void {
    this.#sessions.get(id).then((found) => done(null, found ? JSON.parse(found.data) : null), done)
  }

  /** Nothing changes a session once it has begun, so that one which has ended is not written again. */
  override set(id: string, data: session.SessionData, done: Callback = () => {}): void {
    const expiresAt = Date.now() + lifetimeMilliseconds
    this.#sessions.create(id, { userId: data.userId, data: JSON.stringify(data), expiresAt }).then(() => done(), done)
  }

  override destroy(id: string, done: Callback = () => {}): void {
    this.#sessions.delete(id).then(() => done(), done)
  }
}

/** Signs the user in, under a new session id, so that one which somebody else has planted is worth nothing. */
export async function signIn(request: Express.Request, user: User, byLink: boolean): Promise<void> {
  await new Promise<void>((resolve, reject) =>
    request.session.regenerate((error) => (error ? reject(error) : resolve())),
  )
  request.session.userId = user.id
  request.session.byLink = byLink
  // Before the answer, so that the browser's next request finds it.
  await new Promise<void>((resolve, reject) => request.session.save((error) => (error ? reject(error) : resolve())))
}

/** Ends the session in the store, so that its cookie is worth nothing any more. */
export async function signOut(request: Express.Request): Promise<void> {
  await new Promise<void>((resolve, reject) => request.session.destroy((error) => (error ? reject(error) : resolve())))
}
