/** Sends emails by the operator's SMTP server. */
import type { Transporter } from 'nodemailer'
import { describeConnectionFailure } from '../../storage/error-causes.ts'
import type { WebhookResult } from '../webhooks/send-webhook.ts'

export interface Mail {
  /** Of the delivery: a repeated email has the same `Message-ID`. */
  id: string
  to: readonly string[]
  subject: string
  text: string
  html: string
}

export interface MailResult extends WebhookResult {
  /** Whether the server may have accepted the email, so that another attempt could send it twice. */
  isFinal?: boolean
}

interface MailSenderOptions {
  /** Of the SMTP server; `undefined` if the operator has set none. */
  url: string | undefined
  from?: string | undefined
  /** Emails go to addresses in these domains only; `undefined` for all. */
  domains?: readonly string[] | undefined
  totalMilliseconds?: number | undefined
}

/** Servers that filter content answer late. All of it takes less than the lease of a delivery, so that no attempt overlaps it. */
const timeouts = { connection: 10_000, silence: 45_000, total: 50_000 }
const errorCharactersMax = 500
const responseCharactersMax = 1024

const unconfirmed = 'The SMTP server has not confirmed the email, which it may have accepted. It is not sent again.'

export class MailSender {
  readonly #url: string | undefined
  readonly #from: string
  readonly #domains: readonly string[] | undefined
  readonly #totalMilliseconds: number

  constructor({ url, from = '', domains, totalMilliseconds = timeouts.total }: MailSenderOptions) {
    this.#url = url
    this.#from = from
    this.#domains = domains
    this.#totalMilliseconds = totalMilliseconds
  }

  get isConfigured(): boolean {
    return this.#url !== undefined
  }

  /** Connects, and signs in if the URL has a user. @throws {Error} with the reason of the server or the system. */
  async verify(): Promise<void> {
    if (this.#url === undefined) throw new Error('The operator has not set SMTP_URL.')
    await (await createTransport(this.#url, { isWritten: false })).verify()
  }

  /** Never rejects. `signal` closes the connection. */
  async send(mail: Mail, signal: AbortSignal): Promise<MailResult> {
    const { id, to, subject, text, html } = mail
    const domain = this.#from.split('@').at(-1) ?? ''
    const progress = { isWritten: false }
    const refused = findForbiddenAddress(to, this.#domains)
    if (refused !== undefined)
      return { status: null, body: null, error: `The operator permits no emails to ${refused}.`, isFinal: true }
    try {
      if (this.#url === undefined) throw new Error('The operator has not set SMTP_URL.')
      const transport = await createTransport(this.#url, progress)
      const { response, rejected = [] } = await transport.sendMail({
        messageId: `<${id}@${domain}>`,
        from: { name: 'execution-service', address: this.#from },
        // Not as text, which would be parsed.
        to: to.map((address) => ({ name: '', address })),
        ...{ subject, text, html },
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(this.#totalMilliseconds)]),
      })
      const rest = rejected.length === 0 ? '' : ` Refused: ${rejected.join(', ')}.`
      return { status: null, body: `${response}${rest}`.slice(0, responseCharactersMax), error: null }
    } catch (error) {
      const isRefused = (error as { response?: string }).response !== undefined
      if (progress.isWritten && !isRefused) return { status: null, body: null, error: unconfirmed, isFinal: true }
      return { status: null, body: null, error: explain(error).slice(0, errorCharactersMax) }
    }
  }
}

/** The first address that is in none of the domains, if these are limited. */
export function findForbiddenAddress(
  addresses: readonly string[],
  domains: readonly string[] | undefined,
): string | undefined {
  return domains && addresses.find((address) => !domains.includes(address.split('@').at(-1)?.toLowerCase() ?? ''))
}

/** Loads the library with the first email. A transport has no connection of its own: each email has one. */
async function createTransport(url: string, progress: { isWritten: boolean }): Promise<Transporter> {
  const { createTransport: create } = await import('nodemailer')
  const transport = create({
    url,
    connectionTimeout: timeouts.connection,
    greetingTimeout: timeouts.silence,
    socketTimeout: timeouts.silence,
    dnsTimeout: timeouts.connection,
    // No part of an email is read from a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  transport.use('stream', ({ message }, done) => {
    // The server has allowed DATA when the message is read. Its end is followed by the dot that ends the email.
    message.processFunc((input) =>
      input.once('end', () => {
        progress.isWritten = true
      }),
    )
    done()
  })
  return transport
}

/** What the server said, without the address of the server, which is the operator's. */
function explain(error: unknown): string {
  const { code, response, message } = error as Error & { code?: string; response?: string }
  if (response) return `The SMTP server refused the email: ${response}`
  if (code === 'EABORT') return 'The SMTP server has not read the email in time.'
  const failure = describeConnectionFailure('The SMTP server', error)
  return failure ?? (code === undefined ? message : `The email could not be sent (${code}).`)
}
