/**
 * Whether the browser of an attempt is signed in, in the executor: asks the workflow's `signedOut` before the workflow gets
 * its browser, and when it has failed. Runs that sign a browser context in call the workflow in other ways.
 */
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { SignedOut } from '../../domain/workflows/define-workflow.ts'
import { totpCode } from '../../domain/workflows/totp.ts'
import { awaitedMinutes, type SessionStart } from './messages.ts'
import { describeError } from './workflow-values.ts'

type IsSignedOut = (page: Page) => Promise<boolean> | boolean

export interface SessionBrowser {
  open(options?: BrowserContextOptions): Promise<BrowserContext>
  takeOver(message: string, waitMinutes: number | undefined): Promise<boolean>
  readonly isOpen: boolean
  readonly crashed: boolean
}

interface SessionOptions {
  browser: SessionBrowser
  /** The workflow's, if its definition has one. */
  signedOut: IsSignedOut | undefined
  signal: AbortSignal
  warn(message: string): void
  /** Masks a code from now on. Resolves with whether the browser context had used no code of this time step or a later one. */
  useCode(code: string, step: number): Promise<boolean>
  now(): number
  checkMilliseconds?: number
}

const checkMillisecondsMax = 30_000
/** A site may need some seconds until it gets a code. */
const codeMillisecondsMin = 3000

export class RunSession {
  readonly #start: SessionStart
  readonly #options: SessionOptions
  readonly #lost = Promise.withResolvers<never>()
  #opened: Promise<BrowserContext> | undefined
  #lastStep = 0

  constructor(start: SessionStart, options: SessionOptions) {
    this.#start = start
    this.#options = options
    // The attempt may end without it.
    this.#lost.promise.catch(() => {})
  }

  /** Whether answers come while the process waits: a code is for the page that has asked for it. */
  get staysForAnswers(): boolean {
    return this.#start.kind === 'signIn' && this.#options.browser.isOpen
  }

  /** Whether an attempt that has thrown this waits for a session, or is a check that has found none. */
  isSuspendedBy(error: unknown): boolean {
    return error instanceof SignedOut && (this.#start.kind === null || this.#start.kind === 'check')
  }

  /** Opens the browser. If it is signed out, the promise stays pending, so that no `catch` of the workflow goes on. */
  open(options?: BrowserContextOptions): Promise<BrowserContext> {
    const { browser } = this.#options
    if (this.#start.kind !== null) return browser.open(options)
    this.#opened ??= browser.open(options).then(async (context) => {
      if (!(await this.#isSignedOut(context))) return context
      this.#lost.reject(new SignedOut())
      return new Promise<never>(() => {})
    })
    return this.#opened
  }

  /**
   * Executes the run by its kind.
   *
   * @param run calls the workflow's function.
   * @throws {SignedOut} if the run needs a session, or is a check, and there is none.
   */
  async execute(run: () => Promise<unknown>): Promise<unknown> {
    switch (this.#start.kind) {
      case 'check':
        return this.#check()
      case 'byHand':
        return this.#byHand()
      case 'signIn': {
        const output = await run()
        await this.#requireSession()
        return output
      }
      default:
        return this.#needSession(run)
    }
  }

  async #needSession(run: () => Promise<unknown>): Promise<unknown> {
    try {
      return await Promise.race([run(), this.#lost.promise])
    } catch (error) {
      const { browser, signal } = this.#options
      const mayAsk = !(error instanceof SignedOut) && browser.isOpen && !browser.crashed && !signal.aborted
      if (mayAsk && (await this.#isSignedOut(await browser.open())))
        throw new SignedOut(`The browser context is signed out. The workflow failed before: ${describe(error)}`)
      throw error
    }
  }

  async #check(): Promise<null> {
    const { browser, signedOut } = this.#options
    if (!signedOut) throw new Error('The workflow has no signedOut, so it cannot check whether it is signed in.')
    if (await this.#ask(await browser.open(), signedOut)) throw new SignedOut()
    return null
  }

  async #byHand(): Promise<null> {
    const { browser, signedOut } = this.#options
    const context = await browser.open()
    const page = await context.newPage()
    // Loads the site. What it finds does not matter yet.
    if (signedOut) await this.#within(async () => signedOut(page)).catch(() => {})
    const isTaken = await browser.takeOver('Sign in, and return control when it is done.', awaitedMinutes.max)
    if (!isTaken) throw Object.assign(new Error('No user took over the browser in time.'), { name: 'NotTakenOver' })
    await this.#requireSession()
    return null
  }

  async #requireSession(): Promise<void> {
    const { browser } = this.#options
    if (!browser.isOpen || !(await this.#isSignedOut(await browser.open()))) return
    const message = 'The workflow has signed in, but its signedOut still finds no session.'
    throw Object.assign(new Error(message), { name: 'StillSignedOut' })
  }

  /** A check that fails says nothing about the session. */
  async #isSignedOut(context: BrowserContext): Promise<boolean> {
    const { signedOut, warn, signal } = this.#options
    if (!signedOut) return false
    try {
      return await this.#ask(context, signedOut)
    } catch (error) {
      if (!signal.aborted) warn(`signedOut failed, so the run goes on: ${describe(error)}`)
      return false
    }
  }

  async #ask(context: BrowserContext, signedOut: IsSignedOut): Promise<boolean> {
    const page = await context.newPage()
    try {
      return (await this.#within(async () => signedOut(page))) === true
    } finally {
      await page.close().catch(() => {})
    }
  }

  async #within<Result>(work: () => Promise<Result>): Promise<Result> {
    const { checkMilliseconds = checkMillisecondsMax } = this.#options
    const tooSlow = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => tooSlow.reject(new Error(`signedOut took more than ${checkMilliseconds / 1000} s.`)),
      checkMilliseconds,
    )
    try {
      return await Promise.race([work(), tooSlow.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  /** A code that no earlier call has got, of this attempt or another one, and that is valid for some seconds. */
  async code(): Promise<string> {
    const { totp } = this.#start
    const { now, signal, useCode } = this.#options
    if (this.#start.kind !== 'signIn') throw new Error('totp() is for runs that sign a browser context in.')
    if (totp === null) throw new Error('The sign-in of the browser context has no TOTP seed.')
    for (;;) {
      signal.throwIfAborted()
      const { code, step, millisecondsLeft } = await totpCode(totp, now())
      if (step > this.#lastStep && millisecondsLeft >= codeMillisecondsMin) {
        this.#lastStep = step
        // A site accepts each code once (RFC 6238, section 5.2), also from an attempt that a worker has lost.
        if (await useCode(code, step)) return code
      }
      await pause(millisecondsLeft + 1, signal)
    }
  }
}

function describe(error: unknown): string {
  const { name, message } = describeError(error, '')
  return `${name}: ${message}`
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        reject(signal.reason)
      },
      { once: true },
    )
  })
}
