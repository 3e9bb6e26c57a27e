/**
 * Makes pages live that work without it: copies text, follows what changes on the server, and forgets a key's value when
 * its page is left. Times in the reader's own zone are the `relative-time` element's.
 */
import { Idiomorph } from './idiomorph.js'
import './relative-time.js'

/** A button with `data-copy` copies the text of the element that it names, and says so. */
function copy() {
  // Browsers have no clipboard for pages that came by plain HTTP from another machine.
  if (!navigator.clipboard) return
  for (const button of document.querySelectorAll('button[data-copy]')) button.hidden = false
}

document.addEventListener('click', async (event) => {
  const button = event.target instanceof Element && event.target.closest('button[data-copy]')
  if (!button) return
  const text = document.querySelector(button.dataset.copy)?.textContent ?? ''
  await navigator.clipboard.writeText(text)
  const label = button.textContent
  button.textContent = 'Copied'
  setTimeout(() => {
    button.textContent = label
  }, 2000)
})

/** When a stream that was refused is asked for again. */
const comebackMilliseconds = 5000

/** The page is read anew at most this often. */
const refreshMilliseconds = 300

/** An element with `data-live` is kept as the server has it, whenever the stream of that address says so. */
class Live {
  #stream
  #element
  #again = false
  #isReading = false
  /** Nothing will change any more, or it is not for this reader any more. */
  #over = false

  constructor(element) {
    this.#element = element
    // A browser has few connections to one host: a page that nobody sees holds none.
    document.addEventListener('visibilitychange', () => this.#follow())
    this.#follow()
  }

  #follow() {
    this.#stream?.close()
    this.#stream = undefined
    if (this.#over || document.hidden) return
    const stream = new EventSource(this.#element.dataset.live)
    this.#stream = stream
    stream.addEventListener('change', () => this.#read())
    // A browser comes back by itself when the connection breaks, but gives up when a proxy answers in the server's place.
    stream.addEventListener('error', () => {
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => this.#comeBack(), comebackMilliseconds)
    })
    stream.addEventListener('end', () => {
      this.#over = true
      stream.close()
      this.#read()
    })
  }

  async #comeBack() {
    await this.#read()
    this.#follow()
  }

  async #read() {
    this.#again = true
    if (this.#isReading) return
    this.#isReading = true
    while (this.#again) {
      this.#again = false
      await this.#refresh().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, refreshMilliseconds))
    }
    this.#isReading = false
  }

  async #refresh() {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' } })
    // Somebody has signed out elsewhere, or the thing is gone: the page says what it has, until it is left.
    if (answer.redirected || answer.status === 404) {
      this.#over = true
      this.#stream?.close()
    }
    if (answer.redirected || !answer.ok) return
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const fresh = page.getElementById(this.#element.id)
    if (!fresh) return
    Idiomorph.morph(this.#element, fresh.innerHTML, {
      morphStyle: 'innerHTML',
      ignoreActiveValue: true,
      callbacks: {
        // What the reader has opened stays open.
        beforeAttributeUpdated: (name) => name !== 'open' && name !== 'hidden',
      },
    })
    copy()
  }
}

copy()
for (const element of document.querySelectorAll('[data-live]')) new Live(element)

// On a phone the tabs are wider than the screen.
document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

// A browser may keep a page that was left as it was, to show it again when the reader goes back.
addEventListener('pagehide', () => {
  for (const element of document.querySelectorAll('[data-once]')) element.textContent = 'not shown again'
})
