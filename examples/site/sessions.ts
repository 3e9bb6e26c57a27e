/** The sessions of the shop's customers, and how they end. */
import { randomBytes } from 'node:crypto'
import type { Chance } from './chance.ts'

export interface SessionOptions {
  /** Age at which a session ends. Without it, no session ends by age. */
  sessionSeconds?: number
  /** Share of the requests that find their session ended, between 0 and 1. Default: 0. */
  endRate?: number
  /** Whether a sign-in ends the customer's other sessions. Default: false. */
  oneSession?: boolean
}

interface Session {
  customer: string
  since: number
}

export class Sessions {
  readonly #options: SessionOptions
  readonly #chance: Chance
  /** By cookie value. */
  readonly #open = new Map<string, Session>()
  readonly #ended: string[] = []

  constructor(options: SessionOptions, chance: Chance) {
    this.#options = options
    this.#chance = chance
  }

  /** Customers whose session has ended, one entry for each session that its customer did not end by signing out. */
  get ended(): readonly string[] {
    return this.#ended
  }

  /** Returns the value of the session's cookie. */
  start(customer: string): string {
    const others = this.#options.oneSession ? [...this.#open].filter(([, it]) => it.customer === customer) : []
    for (const [id] of others) this.#end(id, customer)
    const id = randomBytes(16).toString('hex')
    this.#open.set(id, { customer, since: Date.now() })
    return id
  }

  /** The customer of a request; `undefined` if the session has ended, which it may do now. */
  customerOf(id: string): string | undefined {
    const session = this.#open.get(id)
    if (!session) return undefined
    const { customer, since } = session
    const { sessionSeconds = Number.POSITIVE_INFINITY, endRate = 0 } = this.#options
    const isTooOld = Date.now() - since >= sessionSeconds * 1000
    if (!isTooOld && !this.#chance.happens(endRate, 'session', customer)) return customer
    this.#end(id, customer)
    return undefined
  }

  signOut(id: string): void {
    this.#open.delete(id)
  }

  #end(id: string, customer: string): void {
    this.#open.delete(id)
    this.#ended.push(customer)
  }
}
