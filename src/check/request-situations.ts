/** Situations of requests: what the service, a proxy and the network may do between a request and its response. */
import * as change from './changes.ts'
import * as judge from './judges.ts'
import type { Change, UseSituation } from './situation.ts'

type Respond = Change['respond']
type Of = Pick<UseSituation, 'id' | 'title' | 'rule' | 'judges'> & Partial<UseSituation>

const retryRule = 'Send the request again, after a delay, with the same Idempotency-Key.'
const giveUpRule = 'Do not repeat a request that fails the same way each time; report the failure.'
const toleranceRule = 'Work as if it were not there.'
const forever = Number.POSITIVE_INFINITY
const docs = {
  retries: 'guides/idempotency-and-retries.md',
  key: 'guides/idempotency-and-retries.md#idempotency-key',
  errors: 'guides/errors.md',
  versioning: 'guides/versioning.md#execution-api-v1-is-stable',
  following: 'guides/following-a-run.md',
  pages: 'guides/pagination.md',
  proxies: 'guides/reverse-proxies.md',
  authentication: 'guides/authentication.md',
}

const situation =
  (defaults: Pick<UseSituation, 'docs' | 'source'> & Partial<UseSituation>) =>
  (own: Of): UseSituation => ({ group: 'requests', ...defaults, ...own })

const plain = situation({ docs: docs.errors, source: 'The OpenAPI document' })
const tolerant = situation({ docs: docs.versioning, source: 'Versioning: additions within /v1', withoutWait: true })
const queueing = situation({ docs: docs.key, source: 'RFC 9110, sections 9.2.2 and 15.6' })
const reading = situation({ docs: docs.retries, source: 'RFC 9110, section 9.2.2', withoutWait: true })
const refused = situation({ docs: docs.errors, source: 'RFC 9110, section 15.5', seconds: 5 })
const streamed = situation({ docs: docs.following, source: 'WHATWG HTML, section 9.2', withoutWait: true })
const listed = situation({ docs: docs.pages, source: 'The OpenAPI document: nextCursor' })

const again = [judge.retries, judge.keepsIdempotencyKey, judge.queuesOnce, judge.succeeds]
const queue = (respond: Respond, times = 1): { change: Change } => ({ change: { to: 'queue', times, respond } })
const read = (respond: Respond, times = 1, skip = 0): { change: Change } => ({
  change: { to: 'read', times, skip, respond },
})
const all = (respond: Respond): { change: Change } => ({ change: { to: 'any', times: forever, respond } })
const list = (respond: Respond, times = 1): { change: Change } => ({ change: { to: 'list', times, respond } })

const recovers = [judge.succeeds]
const fails = (count: number) => [judge.isNotDone, judge.sendsAtMost(count, 'any')]

/** The use without anything unusual, which all others are compared with. */
export const plainUse: UseSituation = plain({
  ...{ id: 'plain-use', title: 'The service does everything as documented' },
  rule: 'Do the work, with requests that the OpenAPI document allows.',
  judges: [judge.fitsTheDocument, judge.succeeds],
})

export const requestSituations: readonly UseSituation[] = [
  plainUse,
  plain({
    ...{ id: 'credential-in-header', title: 'The service reads the API key from a header', docs: docs.authentication },
    ...{ rule: 'Send the key in the header, never in the URL.', judges: [judge.keepsKeyOutOfUrls] },
  }),
  plain({
    ...{ id: 'idempotency-key', title: 'A caller queues a run', docs: docs.key },
    rule: 'Send an Idempotency-Key with each request that queues a run.',
    ...queue((_exchange, pass) => pass()),
    judges: [judge.keepsIdempotencyKey],
  }),

  tolerant({
    ...{ id: 'unknown-member', title: 'Responses have members that no document has', rule: toleranceRule },
    ...all(change.withBody(change.withUnknownMembers)),
    judges: recovers,
  }),
  tolerant({
    ...{ id: 'unknown-header', title: 'Responses have unknown headers', rule: toleranceRule },
    ...all(change.withHeaders({ 'x-added': 'by a newer version', deprecation: '@1767225600' })),
    judges: recovers,
  }),
  tolerant({
    ...{ id: 'new-document-hash', title: 'The service implements a newer document', rule: toleranceRule },
    ...all(change.withHeaders({ 'x-document-hash': '0123456789abcdef' })),
    judges: recovers,
  }),
  tolerant({
    ...{ id: 'unknown-problem-type', title: 'The service is unavailable with an unknown problem type and members' },
    ...{ rule: 'Treat it as its status: send the request again.', ...queue(change.refuseAsUnknown) },
    judges: again,
  }),
  tolerant({
    ...{ id: 'unknown-waiting-for', title: 'A run waits for something that no document has' },
    rule: 'Decide by `finishedAt` or the final statuses whether a run has ended.',
    ...read(change.asRun((text) => ({ ...change.ongoing, status: 'queued', waitingFor: text }))),
    judges: recovers,
  }),
  tolerant({
    ...{ id: 'unknown-status', title: 'A run that has not ended has an unknown status' },
    rule: 'Decide by `finishedAt` or the final statuses whether a run has ended.',
    ...read(change.asRun((text) => ({ ...change.ongoing, status: text }))),
    judges: recovers,
  }),

  queueing({
    ...{ id: 'queue-unavailable', title: 'Queueing is answered with 503, as during a deployment', rule: retryRule },
    ...queue(change.refuse(503, 1)),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-unavailable-retry-after', title: 'Queueing is answered with 503 and Retry-After: 2' },
    ...{ rule: 'Wait for at least as long as Retry-After says.', ...queue(change.refuse(503, 2)) },
    ...{ source: 'RFC 9110, section 10.2.3', judges: [judge.waits(2)] },
  }),
  queueing({
    ...{ id: 'queue-unavailable-until-date', title: 'A proxy answers with 503 and a date in Retry-After' },
    ...{ rule: 'Read a date in Retry-After, too.', ...queue(change.refuseUntilDate(2)) },
    ...{ source: 'RFC 9110, section 10.2.3', judges: [judge.waits(1), judge.succeeds] },
  }),
  queueing({
    ...{ id: 'queue-rate-limited', title: 'Queueing is answered with 429 and Retry-After: 2', docs: docs.retries },
    ...{ rule: 'Wait for at least as long as Retry-After says.', ...queue(change.refuse(429, 2)) },
    ...{ source: 'RFC 6585, section 4', judges: [judge.waits(2), judge.retries, judge.succeeds] },
  }),
  queueing({
    ...{ id: 'queue-cut-before', title: 'The connection breaks before the service gets the request', rule: retryRule },
    ...queue(change.cutBefore),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-cut-after', title: 'The run is queued, and the connection breaks before the 202', rule: retryRule },
    ...queue(change.cutAfter),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-cut-half-way', title: 'The connection breaks in the middle of the 202', rule: retryRule },
    ...queue(change.cutHalfWay),
    judges: again,
  }),
  queueing({
    ...{
      id: 'queue-unavailable-afterwards',
      title: 'The run is queued, and a proxy answers with 503',
      rule: retryRule,
    },
    ...queue(change.unavailableAfterwards),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-bad-gateway', title: 'A proxy answers with 502 and HTML', rule: retryRule, docs: docs.proxies },
    ...queue(change.gateway(502)),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-gateway-gives-up', title: 'The run is queued, and a proxy answers with 504 and HTML' },
    ...{ rule: retryRule, docs: docs.proxies, ...queue(change.gateway(504, true)) },
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-unavailable-twice', title: 'Queueing fails twice, and then succeeds', rule: retryRule },
    ...queue(change.refuse(503, 1), 2),
    judges: again,
  }),
  queueing({
    ...{ id: 'queue-slow', title: 'The response to queueing takes 5 seconds', docs: docs.retries },
    ...{ rule: 'Wait for the response.', ...queue(change.late(5)) },
    judges: [judge.queuesOnce, judge.succeeds],
  }),
  queueing({
    ...{ id: 'queue-answers-200', title: 'The response to queueing is 200: the key was repeated or the run has ended' },
    ...{ rule: 'Accept 200 like 202.', ...queue(change.withBody((body) => body, 200)) },
    ...{ source: 'The OpenAPI document: queueRemoteRun', judges: recovers },
  }),
  queueing({
    ...{ id: 'wait-not-honoured', title: 'The service does not wait although `Prefer: wait` asks for it' },
    ...{ rule: 'Read the run until it has ended.', source: 'RFC 7240, section 4.3', withoutWait: true },
    ...{ docs: docs.following, ...queue((_exchange, pass) => pass()), judges: recovers },
  }),

  refused({
    ...{ id: 'queue-unavailable-forever', title: 'Queueing is answered with 503 each time', rule: giveUpRule },
    ...{ docs: docs.retries, ...queue(change.refuse(503), forever), judges: fails(12) },
  }),
  refused({
    ...{ id: 'queue-rate-limited-forever', title: 'Queueing is answered with 429 and Retry-After: 1 each time' },
    ...{ rule: 'Send no more requests than Retry-After allows.', docs: docs.retries },
    ...{ ...queue(change.refuse(429, 1), forever), judges: fails(6) },
  }),
  refused({
    ...{ id: 'key-rotated', title: 'The API key was replaced: each request is answered with 401', rule: giveUpRule },
    ...{ docs: docs.authentication, ...all(change.refuseInPlainText(401)), judges: fails(3) },
  }),
  refused({
    ...{ id: 'key-without-scope', title: 'The API key lacks a scope: each request is answered with 403' },
    ...{ rule: giveUpRule, docs: docs.authentication, ...all(change.refuseInPlainText(403)), judges: fails(3) },
  }),
  refused({
    ...{ id: 'queue-invalid', title: 'The variables no longer fit the workflow: queueing is answered with 400' },
    ...{ rule: giveUpRule, ...queue(change.refuse(400), forever), judges: [judge.doesNotRepeat, judge.isNotDone] },
  }),
  refused({
    ...{ id: 'workflow-gone', title: 'The workflow is no longer deployed: queueing is answered with 404' },
    ...{ rule: giveUpRule, ...queue(change.refuse(404), forever), judges: [judge.doesNotRepeat, judge.isNotDone] },
  }),
  refused({
    ...{ id: 'idempotency-conflict', title: 'The Idempotency-Key was used with another request: 409' },
    ...{ rule: giveUpRule, ...queue(change.refuse(409), forever), judges: fails(3) },
  }),
  refused({
    ...{ id: 'storage-quota', title: 'The account has reached its storage quota: 507', rule: giveUpRule },
    ...{ ...queue(change.refuse(507), forever), judges: fails(6) },
  }),
  refused({
    ...{ id: 'queue-internal-error', title: 'Queueing is answered with 500 each time', rule: giveUpRule },
    ...{ ...queue(change.refuse(500), forever), judges: fails(12) },
  }),
  refused({
    ...{ id: 'redirect-to-other-host', title: 'A proxy redirects to another host', docs: docs.proxies },
    ...{ rule: 'Send the API key to no other host.', source: 'RFC 9110, section 15.4' },
    ...{ ...all(change.redirect(307, '{elsewhere}/v1')), judges: [judge.keepsKeyFromOthers, judge.isNotDone] },
  }),
  refused({
    ...{ id: 'redirect-to-sign-in', title: 'A proxy redirects to a page to sign in, which is HTML with status 200' },
    ...{ rule: 'Do not take HTML for a response of the service.', docs: docs.proxies },
    ...{ ...all(change.redirect(302, '{elsewhere}/sign-in')), judges: [judge.isNotDone] },
  }),
  refused({
    ...{ id: 'html-with-200', title: 'A proxy answers with its own page and status 200', docs: docs.proxies },
    rule: 'Do not take HTML for a response of the service.',
    ...{ ...all(change.gateway(200)), judges: [judge.isNotDone] },
  }),

  reading({
    ...{ id: 'read-unavailable', title: 'Reading the run is answered with 503 once', rule: 'Read it again.' },
    ...{ ...read(change.refuse(503, 1)), judges: [judge.succeeds, judge.queuesOnce] },
  }),
  reading({
    ...{ id: 'read-rate-limited', title: 'Reading the run is answered with 429 and Retry-After: 2' },
    ...{ rule: 'Read it again after Retry-After.', ...read(change.refuse(429, 2)) },
    judges: [judge.waits(2), judge.succeeds, judge.queuesOnce],
  }),
  reading({
    ...{ id: 'read-bad-gateway', title: 'A proxy answers reading the run with 502 and HTML', rule: 'Read it again.' },
    ...{ ...read(change.gateway(502)), judges: [judge.succeeds, judge.queuesOnce] },
  }),
  reading({
    ...{ id: 'read-cut', title: 'The connection breaks while the run is read', rule: 'Read it again.' },
    ...{ ...read(change.cutAfter), judges: [judge.succeeds, judge.queuesOnce] },
  }),
  reading({
    ...{ id: 'read-cut-half-way', title: 'The connection breaks in the middle of the run', rule: 'Read it again.' },
    ...{ ...read(change.cutHalfWay), judges: [judge.succeeds, judge.queuesOnce] },
  }),
  reading({
    ...{ id: 'read-slow', title: 'Reading the run takes 4 seconds', rule: 'Wait for the response.' },
    ...{ ...read(change.late(4)), judges: recovers },
  }),
  reading({
    ...{ id: 'read-in-pieces', title: 'Responses arrive in small pieces that divide characters' },
    ...{ rule: 'Decode the body when it is complete.', source: 'RFC 9112, section 7.1' },
    ...{ ...all(change.inPieces), judges: recovers },
  }),
  reading({
    ...{ id: 'read-unauthorized', title: 'The run token or key expires before the run has ended: 401' },
    ...{ rule: giveUpRule, docs: docs.authentication, seconds: 5, ...read(change.refuseInPlainText(401), forever) },
    judges: [judge.sendsAtMost(3, 'read'), judge.doesNotUseTheRun],
  }),
  reading({
    ...{ id: 'read-unavailable-forever', title: 'Reading the run is answered with 503 each time', seconds: 5 },
    ...{ rule: 'Wait longer after each failure.', ...read(change.refuse(503), forever) },
    judges: [judge.sendsAtMost(20, 'read'), judge.doesNotUseTheRun],
  }),
  reading({
    ...{ id: 'clock-behind', title: 'The clock of the service is a day behind that of the program' },
    ...{ rule: 'Compare times of the service only with each other.', source: 'RFC 9110, section 6.6.1' },
    ...{ ...all(change.withHeaders({ date: 'Thu, 01 Jan 2026 00:00:00 GMT' })), judges: recovers },
  }),

  streamed({
    ...{ id: 'events-cut', title: 'The event stream breaks after its first event' },
    rule: 'Open it again with Last-Event-ID, or read the run.',
    events: (block, index, connection) => (connection === 0 && index === 1 ? undefined : block),
    judges: [judge.resumesStream, judge.succeeds],
  }),
  streamed({
    ...{ id: 'events-unknown-type', title: 'The event stream has an event of an unknown type' },
    ...{ rule: 'Skip it.', source: 'Versioning: new event types', docs: docs.versioning },
    events: (block, index, _connection, text) =>
      index === 0
        ? `${block.replace(/"type":"\w+"/, `"type":"${text}"`).replace(/^event: .*$/m, `event: ${text}`)}\n\n${block}`
        : block,
    judges: recovers,
  }),
  streamed({
    ...{ id: 'events-heartbeat', title: 'The event stream has comments between events', rule: 'Skip them.' },
    ...{ events: (block) => `: heartbeat\n\n${block}`, judges: recovers },
  }),
  streamed({
    ...{ id: 'events-unavailable', title: 'The event stream is answered with 503 once' },
    ...{ rule: 'Open it again, or read the run.', change: { to: 'events', respond: change.refuse(503, 1) } },
    judges: recovers,
  }),

  listed({
    ...{ id: 'list-empty-page', title: 'A page of a list is empty, and has a cursor' },
    rule: 'Go on until `nextCursor` is null.',
    ...list(change.withBody((body, text) => ({ ...body, data: [], nextCursor: text }))),
    judges: [judge.readsAllPages],
  }),
  listed({
    ...{ id: 'list-cursor-characters', title: 'A cursor has characters that URLs encode' },
    rule: 'Encode the cursor, and send it as it is.',
    ...list(change.withBody((body, text) => ({ ...body, nextCursor: `${text}+/=&%20` }))),
    judges: [judge.readsAllPages],
  }),
  listed({
    ...{ id: 'list-large-page', title: 'A page of a list has 100 large items', rule: 'Read it.' },
    ...list(
      change.withBody((body) => ({
        ...body,
        data: [body.data].flat().flatMap((item) => Array.from({ length: 100 }, () => item)),
      })),
    ),
    judges: recovers,
  }),
  listed({
    ...{ id: 'list-unavailable', title: 'A list is answered with 503 once', rule: 'Ask for the page again.' },
    ...{ docs: docs.retries, ...list(change.refuse(503, 1)), judges: [judge.retries, judge.succeeds] },
  }),
]
