/** Sends what an attempt's browser shows while a user watches, in the executor. Costs nothing otherwise. */
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserContext, CDPSession, Page } from 'playwright-core'
import type { PageInput } from '../../domain/run-api/live-views.ts'
import type { AttemptMessage, ShownTab } from '../executors/messages.ts'

/** At most ten frames a second. */
const frameMillisecondsMin = 100
const retryMilliseconds = 100
/** A frame of an ordinary page has 30 to 120 KB. */
const options = { format: 'jpeg', quality: 60, maxWidth: 1280, maxHeight: 1280 } as const
const tabsMax = 20
/** A page that is busy for longer may get the last input after control was returned. */
const inputMillisecondsMax = 2000
const urlLengthMax = 2000

type Events = Pick<BrowserContext, 'on' | 'off'>

export class Screencast {
  readonly #send: (message: AttemptMessage) => void
  #context: BrowserContext | undefined
  #isWatched = false
  /** The page that is shown: the one that was opened or has navigated last. */
  #page: Page | undefined
  #session: CDPSession | undefined
  /** Sessions are opened and closed one after the other. */
  #queue: Promise<void> = Promise.resolve()
  /** Frames that the browser has sent and that are not acknowledged. It sends few ahead of the acknowledgement. */
  #unacknowledged: number[] = []
  #timer: NodeJS.Timeout | undefined
  #nextAt = 0
  /** Input that the page has not handled yet. */
  readonly #inputs = new Set<Promise<void>>()

  constructor(send: (message: AttemptMessage) => void) {
    this.#send = send
  }

  /** Call it when the browser is open. */
  attach(context: BrowserContext): void {
    this.#context = context
    if (this.#isWatched) this.#begin(context)
  }

  start(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    if (this.#context) this.#begin(this.#context)
  }

  stop(): void {
    if (!this.#isWatched) return
    this.#isWatched = false
    const events: Events | undefined = this.#context
    events?.off('page', this.#onPage)
    for (const page of this.#context?.pages() ?? []) this.#unfollow(page)
    this.#show(undefined)
  }

  /** The worker can take another frame. */
  next(): void {
    if (this.#timer || this.#unacknowledged.length === 0) return
    const wait = Math.max(0, this.#nextAt - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const session = this.#session
      const frames = this.#unacknowledged.splice(0)
      this.#nextAt = performance.now() + frameMillisecondsMin * frames.length
      for (const sessionId of frames) session?.send('Page.screencastFrameAck', { sessionId }).catch(() => {})
    }, wait)
  }

  /** Passes a person's input to the shown page, in order. */
  dispatch(input: PageInput): void {
    if (input.type === 'tab') {
      const page = this.#context?.pages().slice(-tabsMax)[input.index]
      if (page) this.#show(page)
      return this.#sendTabs()
    }
    // A session that is being opened gets the input too.
    const handled = this.#queue
      .then(() => this.#session && dispatchInput(this.#session, input))
      .catch(() => {})
      .finally(() => this.#inputs.delete(handled))
    this.#inputs.add(handled)
  }

  /** Resolves when the page has handled all input so far, or after two seconds. */
  async inputHandled(): Promise<void> {
    if (this.#inputs.size > 0)
      await Promise.race([Promise.all(this.#inputs), delay(inputMillisecondsMax, undefined, { ref: false })])
  }

  #begin(context: BrowserContext): void {
    context.on('page', this.#onPage)
    for (const page of context.pages()) this.#follow(page)
    this.#show(context.pages().at(-1))
    this.#sendTabs()
  }

  readonly #onPage = (page: Page) => {
    this.#follow(page)
    this.#show(page)
    this.#sendTabs()
  }

  readonly #onNavigated = (frame: ReturnType<Page['mainFrame']>) => {
    if (frame.parentFrame()) return
    this.#show(frame.page())
    this.#sendTabs()
  }

  readonly #onClosed = (page: Page) => {
    if (this.#page === page) this.#show(this.#context?.pages().at(-1))
    this.#sendTabs()
  }

  #follow(page: Page): void {
    page.on('framenavigated', this.#onNavigated)
    page.on('close', this.#onClosed)
  }

  #unfollow(page: Page): void {
    page.off('framenavigated', this.#onNavigated)
    page.off('close', this.#onClosed)
  }

  #show(page: Page | undefined): void {
    if (this.#page === page) return
    this.#page = page
    this.#enqueue(page)
  }

  #enqueue(page: Page | undefined): void {
    this.#queue = this.#queue.then(() => this.#replaceSession(page)).catch(() => {})
  }

  async #replaceSession(page: Page | undefined): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unacknowledged = []
    const previous = this.#session
    this.#session = undefined
    // Also ends its screencast. Fails if the page is closed.
    await previous?.detach().catch(() => {})
    if (!page || this.#page !== page || page.isClosed()) return
    const session = await page.context().newCDPSession(page)
    this.#session = session
    session.on('Page.screencastFrame', ({ data, sessionId, metadata }) => {
      if (this.#session !== session) return
      this.#unacknowledged.push(sessionId)
      const [width, height] = [Math.round(metadata.deviceWidth), Math.round(metadata.deviceHeight)]
      this.#send({ type: 'frame', data, width, height })
    })
    // Chromium refuses this while a navigation replaces the page's frame.
    await session.send('Page.startScreencast', options).catch(() => this.#retry(page))
  }

  #retry(page: Page): void {
    this.#timer = setTimeout(() => this.#page === page && this.#enqueue(page), retryMilliseconds)
  }

  #sendTabs(): void {
    const pages = this.#context?.pages().slice(-tabsMax) ?? []
    const tabs: ShownTab[] = pages.map((page) => ({
      url: page.url().slice(0, urlLengthMax),
      isShown: page === this.#page,
    }))
    this.#send({ type: 'tabs', tabs })
  }
}

// A person's input for a page, as commands of the DevTools protocol.

async function dispatchInput(session: CDPSession, input: Exclude<PageInput, { type: 'tab' }>): Promise<void> {
  switch (input.type) {
    case 'mouse': {
      const { event: type, x, y, button, clickCount, modifiers } = input
      await session.send('Input.dispatchMouseEvent', { type, x, y, button, clickCount, modifiers })
      return
    }
    case 'wheel': {
      const { x, y, deltaX, deltaY, modifiers } = input
      await session.send('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers })
      return
    }
    case 'key': {
      const { event: type, key, code, keyCode, text, modifiers } = input
      const pressed = { key, code, windowsVirtualKeyCode: keyCode, modifiers }
      await session.send('Input.dispatchKeyEvent', { type, ...pressed, ...(type === 'keyDown' && text && { text }) })
      return
    }
    case 'text':
      await session.send('Input.insertText', { text: input.text })
  }
}
