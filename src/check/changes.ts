/** Changes of responses, which situations are made of. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Answer } from './recording-proxy.ts'
import type { Change } from './situation.ts'

type Respond = Change['respond']
type Members = Record<string, unknown>

const problems: Record<number, [type: string, title: string, detail: string]> = {
  400: ['invalid-request', 'Invalid request', 'The request is invalid. Nothing was stored.'],
  404: ['not-found', 'Not found', 'The account has no such resource.'],
  409: ['idempotency-conflict', 'Idempotency key reused', 'This Idempotency-Key was used with another request.'],
  429: ['rate-limited', 'Too many requests', 'The API key has exceeded its rate limit.'],
  500: ['internal-error', 'Internal error', 'The service has failed.'],
  503: ['unavailable', 'Unavailable', 'The service is being restarted. Try again.'],
  507: ['storage-quota-exceeded', 'Storage quota exceeded', 'This account has reached its storage quota.'],
}

function problem(status: number, headers: Record<string, string> = {}, more: Members = {}): Answer {
  const [type = '', title = '', detail = ''] = problems[status] ?? []
  const body = { type: `/docs/errors#${type}`, title, status, detail, requestId: 'check', ...more }
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
    body: Buffer.from(JSON.stringify(body)),
  }
}

const after = (seconds: number | string) => ({ 'retry-after': String(seconds) })

/** The service does not get the request. */
export const refuse =
  (status: number, retryAfter?: number): Respond =>
  async () =>
    problem(status, retryAfter === undefined ? {} : after(retryAfter))

export const refuseUntilDate =
  (seconds: number): Respond =>
  async () =>
    // In whole seconds: the program waits for at least `seconds`.
    problem(503, after(new Date(Math.ceil(Date.now() / 1000 + seconds) * 1000).toUTCString()))

export const refuseAsUnknown: Respond = async (_exchange, _pass, text) =>
  problem(503, after(1), { type: `/docs/errors#${text}`, title: text, [text]: { [text]: [text] } })

export const refuseInPlainText =
  (status: 401 | 403): Respond =>
  async () => ({
    status,
    headers: { 'content-type': 'text/plain', 'www-authenticate': 'Bearer realm="execution-service"' },
    body: Buffer.from(status === 401 ? 'Unauthorized' : 'Forbidden'),
  })

export const gateway =
  (status: number, acts = false): Respond =>
  async (_exchange, pass) => {
    if (acts) await pass()
    const body = Buffer.from(`<html><head><title>${status}</title></head><body><h1>${status}</h1></body></html>`)
    return { status, headers: { 'content-type': 'text/html' }, body }
  }

export const unavailableAfterwards: Respond = async (_exchange, pass) => {
  await pass()
  return problem(503, after(1))
}

export const cutBefore: Respond = async () => ({ ...problem(500), sent: 'cut' })
export const cutAfter: Respond = async (_exchange, pass) => ({ ...(await pass()), sent: 'cut' })
export const cutHalfWay: Respond = async (_exchange, pass) => ({ ...(await pass()), sent: 'half' })
export const inPieces: Respond = async (_exchange, pass) => ({ ...(await pass()), sent: 'inPieces' })

export const late =
  (seconds: number): Respond =>
  async (_exchange, pass) => {
    await delay(seconds * 1000)
    return pass()
  }

export const redirect =
  (status: number, location: string): Respond =>
  async () => ({ status, headers: { location }, body: Buffer.alloc(0) })

export const withHeaders =
  (headers: Record<string, string>): Respond =>
  async (_exchange, pass) => {
    const answer = await pass()
    return { ...answer, headers: { ...answer.headers, ...headers } }
  }

/** Changes the object in a successful response. */
export const withBody =
  (change: (body: Members, text: string) => unknown, status?: number): Respond =>
  async (_exchange, pass, text) => {
    const answer = await pass()
    if (answer.status >= 300 || !answer.headers['content-type']?.includes('json')) return answer
    const body = change(JSON.parse(answer.body.toString()), text)
    return { ...answer, status: status ?? answer.status, body: Buffer.from(JSON.stringify(body)) }
  }

/** Of responses and of the items of lists; values of authors stay as they are. */
export function withUnknownMembers(body: Members, text: string): Members {
  const added = { [text]: { [text]: [text, null, 1] }, ...body }
  if (!Array.isArray(body.data)) return added
  return { ...added, data: body.data.map((item: Members) => ({ [text]: null, ...item })) }
}

/** @param members of a run that has not ended, or that ends with them. */
export const asRun = (members: Members | ((text: string) => Members)): Respond =>
  withBody((body, text) => ({ ...body, ...(typeof members === 'function' ? members(text) : members) }))

export const ongoing = {
  ...{ finishedAt: null, output: null, error: null, reason: null },
  ...{ status: 'running', waitingFor: null, waitingForDetail: null },
}
