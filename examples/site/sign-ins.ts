/** Signing in to the shop: the password, and then a page for each further proof that the shop wants. */
import { randomBytes, randomInt } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import type { Chance } from './chance.ts'
import { page } from './pages.ts'

export interface SignInOptions {
  /** Names of the customers, who all have the same password. Default: `ada`. */
  customers?: readonly string[]
  /** Seed of the codes of an authenticator app in Base32. Without it, the shop asks for none. */
  totpSeed?: string
  /** Whether the shop asks for a code that it sends by mail. Default: false. */
  mailCode?: boolean
  /** Share of the sign-ins after which the shop wants to see a person, between 0 and 1. Default: 0. */
  captchaRate?: number
  /** Called with each code that the shop sends by mail. */
  onMail?: (mail: { customer: string; code: string }) => void
}

type Proof = 'captcha' | 'totp' | 'mail'

/** A sign-in with the right password that needs further proofs. */
interface Pending {
  customer: string
  missing: Proof[]
  mailedCode: string
}

export class SignIns {
  readonly #password: string
  readonly #options: SignInOptions
  readonly #chance: Chance
  /** By cookie value. */
  readonly #pending = new Map<string, Pending>()
  /** Customers who get the captcha until a person has answered it. */
  readonly #suspected = new Set<string>()

  constructor(password: string, options: SignInOptions, chance: Chance) {
    this.#password = password
    this.#options = options
    this.#chance = chance
  }

  /** Returns the value of the cookie of a sign-in that `answer` continues; `undefined` for a wrong name or password. */
  begin(customer: string, password: string): string | undefined {
    const { customers = ['ada'], totpSeed, mailCode, captchaRate = 0, onMail } = this.#options
    if (!customers.includes(customer) || password !== this.#password) return undefined
    if (this.#chance.happens(captchaRate, 'captcha', customer)) this.#suspected.add(customer)
    const missing: Proof[] = []
    if (this.#suspected.has(customer)) missing.push('captcha')
    if (totpSeed !== undefined) missing.push('totp')
    const mailedCode = String(randomInt(1_000_000)).padStart(6, '0')
    if (mailCode) {
      missing.push('mail')
      onMail?.({ customer, code: mailedCode })
    }
    const id = randomBytes(16).toString('hex')
    this.#pending.set(id, { customer, missing, mailedCode })
    return id
  }

  /** The page that asks for the next proof; `undefined` if there is no such sign-in. */
  page(id: string, refusal?: string): string | undefined {
    const next = this.#pending.get(id)?.missing[0]
    return next && proofPage(next, refusal)
  }

  /** Whether the answer proves what the page asked for. */
  answer(id: string, code: string): boolean {
    const pending = this.#pending.get(id)
    if (!pending || !this.#proves(pending, code)) return false
    if (pending.missing.shift() === 'captcha') this.#suspected.delete(pending.customer)
    return true
  }

  /** Ends a sign-in that has every proof, and returns its customer. */
  complete(id: string): string | undefined {
    const pending = this.#pending.get(id)
    if (!pending || pending.missing.length > 0) return undefined
    this.#pending.delete(id)
    return pending.customer
  }

  #proves({ missing, mailedCode }: Pending, code: string): boolean {
    if (missing[0] === 'mail') return code === mailedCode
    if (missing[0] !== 'totp') return true
    const totp = new TOTP({ secret: Secret.fromBase32(this.#options.totpSeed ?? '') })
    return totp.validate({ token: code, window: 1 }) !== null
  }
}

const proofPages: Record<Proof, [title: string, form: string]> = {
  captcha: ['Are you a person?', '<p>Programs do not press this button.</p><button>I am a person</button>'],
  totp: ['Two-factor authentication', `${codeField('Code of your authenticator app')}<button>Continue</button>`],
  mail: ['Check your mail', `${codeField('Code from the mail')}<button>Continue</button>`],
}

function codeField(label: string): string {
  return `<label>${label} <input name="code" inputmode="numeric" autocomplete="one-time-code" required></label>\n`
}

function proofPage(proof: Proof, refusal?: string): string {
  const [title, form] = proofPages[proof]
  const alert = refusal === undefined ? '' : `<p role="alert">${refusal}</p>\n`
  return page(title, `${alert}<form method="post" action="/sign-in/proof">\n${form}\n</form>`)
}
