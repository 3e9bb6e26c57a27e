/** Judges: each looks at one use of a program, and says in words that repeat what it did wrong. */
import type { Exchange, Kind } from './recording-proxy.ts'
import type { Judge, Use } from './situation.ts'

const ofKind = ({ exchanges }: Use, kind: Kind) =>
  exchanges.filter((exchange) => kind === 'any' || exchange.kind === kind)

/** The requests with the method and path of a changed one that came after it. */
function repeats({ exchanges }: Use): { changed: Exchange; next: Exchange | undefined }[] {
  return exchanges.flatMap((changed, index) => {
    if (!changed.isChanged) return []
    const next = exchanges.slice(index + 1).find(({ method, path }) => {
      return method === changed.method && path.split('?')[0] === changed.path.split('?')[0]
    })
    return [{ changed, next }]
  })
}

export const succeeds: Judge = ({ done, ended }) => (done ? undefined : `It did not do its work: it ${ended}.`)

/** For situations in which no run was queued, or none was readable. */
export const isNotDone: Judge = ({ done }) => (done ? 'It reported success.' : undefined)

/** Only with a consumer file or a function that says when the work is done. */
export const doesNotUseTheRun: Judge = ({ done, isObserved }) =>
  isObserved && done ? 'It did what only a run that succeeded allows.' : undefined

export const retries: Judge = (use) =>
  repeats(use).some(({ next }) => next) ? undefined : 'It did not send the request again.'

export const doesNotRepeat: Judge = (use) =>
  repeats(use).some(({ next }) => next) ? 'It sent the same request again.' : undefined

export const keepsIdempotencyKey: Judge = (use) => {
  const keys = ofKind(use, 'queue').map(({ headers }) => headers['idempotency-key'])
  if (keys.some((key) => key === undefined)) return 'It queued without an Idempotency-Key.'
  const isOther = repeats(use).some(
    ({ changed, next }) => next && next.headers['idempotency-key'] !== changed.headers['idempotency-key'],
  )
  return isOther ? 'It repeated the request with another Idempotency-Key.' : undefined
}

export const queuesOnce: Judge = ({ runs }, plain) =>
  runs.size > plain.runs.size ? 'It queued more runs than without the failure.' : undefined

export const waits =
  (seconds: number): Judge =>
  (use) => {
    const isEarly = repeats(use).some(({ changed, next }) => next && next.at - changed.answeredAt < seconds * 950)
    return isEarly ? `It sent the request again before ${seconds} s had passed.` : undefined
  }

export const sendsAtMost =
  (count: number, kind: Kind): Judge =>
  (use) =>
    ofKind(use, kind).length > count ? `It sent more than ${count} requests.` : undefined

export const keepsKeyFromOthers: Judge = ({ keyLeaked }) =>
  keyLeaked ? 'It sent the API key to another host.' : undefined

export const readsAllPages: Judge = (use) => {
  const lists = ofKind(use, 'list')
  const sent = new Set(lists.map(({ path }) => new URLSearchParams(path.split('?')[1]).get('cursor')))
  const isLeft = lists.some(({ nextCursor }) => nextCursor !== undefined && !sent.has(nextCursor))
  return isLeft ? 'It did not ask for the next page with the cursor of the last one.' : undefined
}

export const resumesStream: Judge = (use) => {
  const [, ...later] = ofKind(use, 'events')
  if (later.length === 0) {
    // Reading the run instead is as good.
    const lastStream = use.exchanges.findLastIndex(({ kind }) => kind === 'events')
    const reads = use.exchanges.slice(lastStream + 1).some(({ kind }) => kind === 'read')
    return reads ? undefined : 'It neither opened the stream again nor read the run.'
  }
  return later.some(({ headers }) => headers['last-event-id'] === undefined)
    ? 'It opened the stream again without Last-Event-ID.'
    : undefined
}

const invalidStatuses = [400, 404, 405, 406, 413, 415]

export const fitsTheDocument: Judge = ({ exchanges }) => {
  const invalid = exchanges.find(({ serviceStatus = 0 }) => invalidStatuses.includes(serviceStatus))
  return invalid && `The service answered ${invalid.method} ${withoutIds(invalid.path)} with ${invalid.serviceStatus}.`
}

const withoutIds = (path: string) => (path.split('?')[0] ?? '').replaceAll(/[0-9a-f-]{36}/g, '{id}')

export const keepsKeyOutOfUrls: Judge = ({ exchanges }) =>
  exchanges.some(({ path }) => /[?&](?:api_?key|key|token|access_token)=/i.test(path))
    ? 'It sent a credential in the URL.'
    : undefined
