/** What a situation is made of: data, and short functions that change a response or judge what the program did. */
import type { Answer, Exchange, Kind } from './recording-proxy.ts'

/** What runs do in the world of a situation. */
export type WorldName = 'succeeding' | 'failing' | 'retrying' | 'waiting' | 'long' | 'timingOut'

interface Described {
  id: string
  /** What the service, a proxy or a sender does. */
  title: string
  /** What the program must do. */
  rule: string
  /** The section of the docs that says so. */
  docs: string
  /** The standard or the part of the contract that the rule follows from. */
  source: string
}

/** Changes responses to requests of a kind. */
export interface Change {
  to: Kind
  /** How many of these requests; 1 by default. */
  times?: number
  /** How many are left as they are before. */
  skip?: number
  respond(exchange: Exchange, pass: () => Promise<Answer>, text: string): Promise<Answer>
}

export interface UseSituation extends Described {
  group: 'requests' | 'runs'
  world?: WorldName
  /** `Prefer: wait` is not honoured, so that the program reads the run. */
  withoutWait?: boolean
  change?: Change
  /** Changes the blocks of event streams; `undefined` cuts the connection. */
  events?(block: string, index: number, connection: number, text: string): string | undefined
  /** Text of the run at which others interfere; by default any. */
  interfereAt?: string
  /** What others do to the run when the program has asked for it for the first time. */
  interfere?(run: InterferedRun): Promise<void>
  /** After these seconds the program is stopped, and judged by what it has sent. By default the limit of the check. */
  seconds?: number
  judges: readonly Judge[]
}

export interface InterferedRun {
  call(method: string, path: string): Promise<void>
  advance(seconds: number): Promise<void>
  /** Resolves when the service shows the run with a text. */
  shows(text: string): Promise<void>
}

/** One use of the program, as it was seen from outside. */
export interface Use {
  exchanges: readonly Exchange[]
  /** Distinct runs that the service has queued. */
  runs: ReadonlySet<string>
  /** How often the situation occurred. */
  applied: number
  /** Whether another host got the API key. */
  keyLeaked: boolean
  done: boolean
  /** Whether `done` means that the run's success was used, not only that the program ended well. */
  isObserved: boolean
  /** How it ended, for people. */
  ended: string
}

/** Returns what the program did wrong. @param plain the use without anything unusual. */
export type Judge = (use: Use, plain: Use) => string | undefined

export interface Signing {
  /** Seconds that the timestamp is off. */
  shiftSeconds?: number
  /** Which secrets sign; by default that of the receiver. */
  by?: readonly ('current' | 'other')[]
}

export interface Delivery extends Signing {
  /** Replaces members of the event. */
  event?(event: WebhookBody): object
  /** The text that is signed. */
  format?(event: object): string
  /** Changes the request after it was signed. */
  tamper?(request: WebhookRequest): WebhookRequest
  /** Closes the connection before the response arrives. */
  isAbandoned?: boolean
  /** An id of its own; by default all deliveries of a situation have the same. */
  hasOtherId?: boolean
  expect: 'accepted' | 'refused' | 'any'
}

export interface WebhookBody {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

export interface WebhookRequest {
  headers: Record<string, string>
  body: string
  isChunked?: boolean
}

export interface WebhookSituation extends Described {
  group: 'webhooks'
  /** How the run of the event has ended; `succeeded` by default. */
  run?: 'succeeded' | 'failed' | 'cancelled' | 'unknown'
  deliveries: readonly Delivery[]
  atOnce?: boolean
  /** How often the receiver has done its work afterwards; by default that is not judged. */
  done?: 0 | 1
}

export type Situation = UseSituation | WebhookSituation
