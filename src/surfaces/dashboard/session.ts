/** Sessions of signed-in users: express-session over the sessions table. */
import type { Request, RequestHandler } from 'express'
import session from 'express-session'
import {
  type Client,
  type NewSession,
  type Sessions,
  type Session as StoredSession,
  sessionMilliseconds,
} from '../../domain/accounts/sessions.ts'

declare module 'express-session' {
  interface SessionData {
    /** The session as stored. */
    stored: StoredSession
    /** Set on a session that begins in this request. */
    begun: NewSession
  }
}

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
    cookie: { httpOnly: true, sameSite: 'lax', path: '/', secure, maxAge: sessionMilliseconds },
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
    this.#sessions.get(id).then((stored) => done(null, stored ? toSessionData(stored) : null), done)
  }

  /** Stores a session once, when it begins: a request in flight cannot restore one that has ended. */
  override set(id: string, { begun }: Partial<session.SessionData>, done: Callback = () => {}): void {
    if (!begun) return done()
    this.#sessions.create(id, begun).then(() => done(), done)
  }

  override destroy(id: string, done: Callback = () => {}): void {
    this.#sessions.end(id).then(() => done(), done)
  }
}

function toSessionData(stored: StoredSession): session.SessionData {
  const cookie = { originalMaxAge: sessionMilliseconds, expires: new Date(stored.expiresAt) }
  return { cookie, stored } as unknown as session.SessionData
}

/**
 * Starts a session under a new id, which defeats session fixation, and saves it before the browser's next request.
 *
 * @throws {CredentialsChangedError}
 */
export async function startSession(request: Request, begun: Omit<NewSession, 'client'>): Promise<void> {
  await completed((done) => request.session.regenerate(done))
  // `regenerate` has replaced the request's session.
  request.session.begun = { ...begun, client: clientOf(request) }
  await completed((done) => request.session.save(done))
  // express-session saves a regenerated session again when the response ends.
  delete (request.session as Partial<session.SessionData>).begun
}

export function clientOf({ ip = '', headers }: Request): Client {
  return { address: ip, userAgent: headers['user-agent'] ?? '' }
}

export async function endSession({ session }: Express.Request): Promise<void> {
  await completed((done) => session.destroy(done))
}

function completed(action: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => action((error) => (error ? reject(error) : resolve())))
}
