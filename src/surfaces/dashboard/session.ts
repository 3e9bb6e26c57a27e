/** Sessions of signed-in users: express-session over the sessions table. */
import type { RequestHandler } from 'express'
import session from 'express-session'
import type { Sessions } from '../../domain/accounts/sessions.ts'
import type { User } from '../../domain/accounts/user.ts'

declare module 'express-session' {
  interface SessionData {
    userId: string
    /** Signed in with a link: the user may set a password without entering the current one. */
    byLink: boolean
  }
}

const lifetimeMilliseconds = 7 * 24 * 60 * 60 * 1000

interface SessionOptions {
  sessions: Sessions
  /** The first signs cookies; cookies signed with the others are still accepted. */
  secrets: string[]
  /** Whether browsers use HTTPS: the cookie is then bound to the host and sent over HTTPS only. */
  secure: boolean
  /** Distinguishes dashboards on one host: cookies are shared between ports. */
  port: number
}

export function sessionHandler({ sessions, secrets, secure, port }: SessionOptions): RequestHandler {
  return session({
    name: secure ? '__Host-session' : `execution-service-${port}`,
    secret: secrets,
    store: new SessionStore(sessions),
    resave: false,
    saveUninitialized: false,
    // An https DASHBOARD_URL states that browsers use HTTPS, whatever headers the proxy sends.
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

  /** Called once for each session: sessions do not change, so a request in flight cannot restore one that has ended. */
  override set(id: string, data: session.SessionData, done: Callback = () => {}): void {
    const expiresAt = Date.now() + lifetimeMilliseconds
    this.#sessions.create(id, { userId: data.userId, data: JSON.stringify(data), expiresAt }).then(() => done(), done)
  }

  override destroy(id: string, done: Callback = () => {}): void {
    this.#sessions.delete(id).then(() => done(), done)
  }
}

/** Starts a session under a new id, which defeats session fixation, and saves it before the browser's next request. */
export async function startSession(request: Express.Request, user: User, byLink: boolean): Promise<void> {
  await completed((done) => request.session.regenerate(done))
  // `regenerate` has replaced the request's session.
  request.session.userId = user.id
  request.session.byLink = byLink
  await completed((done) => request.session.save(done))
}

export async function endSession({ session }: Express.Request): Promise<void> {
  await completed((done) => session.destroy(done))
}

function completed(action: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => action((error) => (error ? reject(error) : resolve())))
}
