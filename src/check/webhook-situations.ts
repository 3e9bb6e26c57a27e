/** Situations of webhooks: what arrives at a receiver, in which order, and by whom it is signed. */
import type { Delivery, WebhookBody, WebhookRequest, WebhookSituation } from './situation.ts'

type Of = Pick<WebhookSituation, 'id' | 'title' | 'rule' | 'deliveries'> & Partial<WebhookSituation>

const webhook =
  (docs: string, source: string) =>
  (own: Of): WebhookSituation => ({ group: 'webhooks', docs: `guides/webhooks.md#${docs}`, source, ...own })

const signed = webhook('verify-requests', 'Standard Webhooks: verifying signatures')
const delivered = webhook('delivery', 'Standard Webhooks: deliverability')
const sent = webhook('events', 'The OpenAPI document: WebhookEvent')

const accepted: Delivery = { expect: 'accepted' }
const refused: Delivery = { expect: 'refused' }
const refuseRule = 'Refuse it with 4xx, and do nothing else.'
const acceptRule = 'Accept it with 2xx.'
const onceRule = 'Accept it with 2xx, and do the work once.'

const headers =
  (changed: Record<string, string>) =>
  (request: WebhookRequest): WebhookRequest => ({ ...request, headers: { ...request.headers, ...changed } })
const without =
  (name: string) =>
  (request: WebhookRequest): WebhookRequest => {
    const { [name]: _, ...others } = request.headers
    return { ...request, headers: others }
  }
const type = (name: string) => (event: WebhookBody) => ({ ...event, type: name })
const data = (members: object) => (event: WebhookBody) => ({ ...event, data: { ...event.data, ...members } })

export const webhookSituations: readonly WebhookSituation[] = [
  sent({ ...{ id: 'webhook', title: 'A run succeeds', rule: onceRule, done: 1 }, deliveries: [accepted] }),
  sent({
    ...{ id: 'webhook-unknown-type', title: 'An event has an unknown type', rule: acceptRule },
    deliveries: [{ ...accepted, event: type('run.archived') }],
  }),
  sent({
    ...{ id: 'webhook-unknown-member', title: 'An event has unknown members', rule: onceRule, done: 1 },
    deliveries: [{ ...accepted, event: (event) => ({ ...data({ region: { name: 'x' } })(event), version: 2 }) }],
  }),
  sent({
    ...{ id: 'webhook-test', title: 'Somebody sends a test event, which has no run', rule: acceptRule },
    deliveries: [{ ...accepted, event: (event) => ({ ...type('webhook.test')(event), data: {} }) }],
  }),
  sent({
    ...{ id: 'webhook-waiting', title: 'A run waits for an answer', rule: acceptRule },
    deliveries: [
      { ...accepted, event: (event) => ({ ...type('run.waiting')(event), data: { ...event.data, status: 'queued' } }) },
    ],
  }),
  sent({
    ...{ id: 'webhook-failed', title: 'A run fails', rule: 'Accept it with 2xx, without the work of a success.' },
    ...{ run: 'failed', done: 0, deliveries: [accepted] },
  }),
  sent({
    ...{ id: 'webhook-cancelled', title: 'A run is cancelled by somebody else', run: 'cancelled', done: 0 },
    ...{ rule: 'Accept it with 2xx, without the work of a success.', deliveries: [accepted] },
  }),
  sent({
    ...{ id: 'webhook-huge', title: 'An event has a body of 300 KB', rule: onceRule, done: 1 },
    deliveries: [{ ...accepted, event: data({ tags: Array.from({ length: 3000 }, () => 'x'.repeat(100)) }) }],
  }),
  sent({
    ...{ id: 'webhook-content-type', title: 'The content type has a charset', rule: acceptRule },
    deliveries: [{ ...accepted, tamper: headers({ 'content-type': 'application/json; charset=utf-8' }) }],
  }),
  delivered({
    ...{ id: 'webhook-twice', title: 'An event is delivered twice', rule: onceRule, done: 1 },
    deliveries: [accepted, accepted],
  }),
  delivered({
    ...{ id: 'webhook-twice-at-once', title: 'An event is delivered twice at the same time', rule: onceRule, done: 1 },
    ...{ atOnce: true, deliveries: [{ ...accepted, expect: 'any' }, { ...accepted, expect: 'any' }, accepted] },
  }),
  delivered({
    ...{ id: 'webhook-response-lost', title: 'The response is lost, and the event is delivered again', rule: onceRule },
    ...{ done: 1, deliveries: [{ isAbandoned: true, expect: 'any' }, accepted] },
  }),
  delivered({
    ...{ id: 'webhook-days-late', title: 'An event arrives three days late', rule: onceRule, done: 1 },
    deliveries: [
      {
        ...accepted,
        event: (event) => ({ ...event, timestamp: new Date(Date.now() - 3 * 86_400_000).toISOString() }),
      },
    ],
  }),
  delivered({
    ...{ id: 'webhook-redelivered-later', title: 'An event is signed again and delivered again', rule: onceRule },
    ...{ done: 1, deliveries: [{ ...accepted, shiftSeconds: -200 }, accepted] },
  }),
  delivered({
    ...{ id: 'webhook-out-of-order', title: 'The wait of a run is reported after its end', rule: onceRule, done: 1 },
    deliveries: [
      accepted,
      {
        ...{ ...accepted, hasOtherId: true },
        event: (event) => ({ ...type('run.waiting')(event), data: { ...event.data, status: 'queued' } }),
      },
    ],
  }),
  delivered({
    ...{ id: 'webhook-before-202', title: 'The event of a run arrives before the response that names the run' },
    rule: 'Do not fail: accept the event, or answer with a status that has it delivered again.',
    ...{ run: 'unknown', deliveries: [{ expect: 'any' }, { expect: 'any' }] },
  }),
  delivered({
    ...{ id: 'webhook-burst', title: 'Twenty events arrive at the same time', rule: acceptRule, atOnce: true },
    deliveries: Array.from({ length: 20 }, () => ({ ...accepted, hasOtherId: true })),
  }),
  signed({
    ...{ id: 'webhook-unsigned', title: 'A request has no signature', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, tamper: without('webhook-signature') }],
  }),
  signed({
    ...{ id: 'webhook-other-secret', title: 'A request is signed with another secret', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, by: ['other'] }],
  }),
  signed({
    ...{ id: 'webhook-empty-signature', title: 'A signature is empty', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, tamper: headers({ 'webhook-signature': 'v1,' }) }],
  }),
  signed({
    ...{ id: 'webhook-changed-body', title: 'The body was changed after it was signed', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, tamper: (request) => ({ ...request, body: request.body.replace('1', '2') }) }],
  }),
  signed({
    ...{
      id: 'webhook-changed-id',
      title: 'The id was changed after the request was signed',
      rule: refuseRule,
      done: 0,
    },
    deliveries: [{ ...refused, tamper: headers({ 'webhook-id': 'msg_other' }) }],
  }),
  signed({
    ...{ id: 'webhook-no-timestamp', title: 'A request has no timestamp', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, tamper: without('webhook-timestamp') }],
  }),
  signed({
    ...{ id: 'webhook-replayed', title: 'A request that was signed an hour ago arrives', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, shiftSeconds: -3600 }],
  }),
  signed({
    ...{ id: 'webhook-from-the-future', title: 'A request was signed an hour ahead', rule: refuseRule, done: 0 },
    deliveries: [{ ...refused, shiftSeconds: 3600 }],
  }),
  signed({
    ...{ id: 'webhook-clock-skew', title: 'The clock of the sender is two minutes behind', rule: onceRule, done: 1 },
    deliveries: [{ ...accepted, shiftSeconds: -120 }],
  }),
  signed({
    ...{ id: 'webhook-secret-rotated', title: 'A request is signed with the new and the previous secret', done: 1 },
    ...{ rule: 'Accept it if one of the signatures is valid.', docs: 'guides/webhooks.md#rotate-the-secret' },
    deliveries: [{ ...accepted, by: ['other', 'current'] }],
  }),
  signed({
    ...{ id: 'webhook-unknown-signature', title: 'A signature of an unknown version precedes the valid one' },
    ...{ rule: 'Skip signatures of unknown versions.', done: 1 },
    deliveries: [
      {
        ...accepted,
        tamper: (request) =>
          headers({ 'webhook-signature': `v2,AAAA ${request.headers['webhook-signature']}` })(request),
      },
    ],
  }),
  signed({
    ...{ id: 'webhook-white-space', title: 'The JSON has white space and escapes', rule: onceRule, done: 1 },
    deliveries: [
      { ...accepted, format: (event) => `${JSON.stringify(event, undefined, 2).replaceAll('-', '\\u002d')}\n` },
    ],
  }),
  signed({
    ...{ id: 'webhook-chunked', title: 'The body arrives in chunks, without a length', rule: onceRule, done: 1 },
    deliveries: [{ ...accepted, tamper: (request) => ({ ...request, isChunked: true }) }],
  }),
  signed({
    ...{
      id: 'webhook-not-json',
      title: 'A signed body is not JSON',
      rule: 'Answer, with any status, and go on.',
      done: 0,
    },
    deliveries: [{ expect: 'any', format: () => '{' }],
  }),
]
