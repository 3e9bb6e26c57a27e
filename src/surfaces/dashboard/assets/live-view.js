/** Shows the browser of a running run while the user watches: frames and tabs from an event stream. */

class LiveView {
  #section
  #stream
  /** Whether the user wants to watch. */
  #isOn = false

  constructor(section) {
    this.#section = section
    section.hidden = false
    this.#find('watch').addEventListener('click', () => this.#toggle())
    // A hidden page must not keep the browser busy.
    document.addEventListener('visibilitychange', () => this.#connect())
    // The run has ended, and the page was updated without this section.
    new MutationObserver(() => section.isConnected || this.#close()).observe(document.body, {
      childList: true,
      subtree: true,
    })
  }

  #find(name) {
    return this.#section.querySelector(`[data-${name}]`)
  }

  #toggle() {
    this.#isOn = !this.#isOn
    this.#find('watch').textContent = this.#isOn ? 'Stop watching' : 'Watch live'
    this.#find('about').hidden = this.#isOn
    this.#find('stage').hidden = !this.#isOn
    this.#find('status').textContent = this.#isOn ? 'Connecting…' : ''
    this.#connect()
  }

  #close() {
    this.#stream?.close()
    this.#stream = undefined
  }

  #connect() {
    this.#close()
    if (!this.#isOn || document.hidden || !this.#section.isConnected) return this.#showFrame(undefined)
    const stream = new EventSource(this.#section.dataset.liveView)
    this.#stream = stream
    const on = (name, act) => stream.addEventListener(name, ({ data }) => act(JSON.parse(data)))
    on('status', ({ text }) => this.#showStatus(text))
    on('tabs', (tabs) => this.#showTabs(tabs))
    on('frame', (frame) => this.#showFrame(frame))
    on('end', () => {
      this.#close()
      this.#showFrame(undefined)
    })
    stream.addEventListener('error', () => {
      this.#showStatus('The connection was lost. Connecting…')
      // Browsers do not reconnect after an error response.
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => this.#stream === stream && this.#connect(), 5000)
    })
  }

  #showStatus(text) {
    this.#find('status').textContent = text
    if (text !== '') this.#showFrame(undefined)
  }

  #showTabs(tabs) {
    const items = tabs.map(({ url, isShown }) => {
      const item = document.createElement('li')
      item.textContent = nameOf(url)
      if (isShown) item.setAttribute('aria-current', 'true')
      return item
    })
    this.#find('tabs').replaceChildren(...items)
    this.#find('address').textContent = tabs.find(({ isShown }) => isShown)?.url ?? ''
  }

  #showFrame(frame) {
    const image = this.#find('frame')
    image.hidden = !frame
    if (!frame) return image.removeAttribute('src')
    image.width = frame.width
    image.height = frame.height
    image.src = `data:image/jpeg;base64,${frame.data}`
  }
}

/** A short name of the page at this address. */
function nameOf(url) {
  const { host, pathname } = URL.parse(url) ?? {}
  return host ? `${host}${pathname === '/' ? '' : pathname}` : url
}

for (const section of document.querySelectorAll('[data-live-view]')) new LiveView(section)
