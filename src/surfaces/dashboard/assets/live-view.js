/** Shows the browser of a running run while the user watches: frames and tabs from an event stream. */
import { RemoteInput } from './remote-input.js'

class LiveView {
  #section
  #stream
  /** Whether the user wants to watch. */
  #isOn = false
  #input

  constructor(section) {
    this.#section = section
    section.hidden = false
    this.#input = new RemoteInput(this.#find('screen'), (inputs) =>
      this.#post('input', { inputs: JSON.stringify(inputs) }),
    )
    this.#find('watch').addEventListener('click', () => this.#toggle())
    // Missing for users whose role does not allow it.
    this.#find('take-over')?.addEventListener('click', () => this.#takeOver())
    this.#find('return-control')?.addEventListener('click', () => this.#returnControl())
    // A hidden page must not keep the browser busy.
    document.addEventListener('visibilitychange', () => this.#connect())
    // The run has ended, and the page was updated without this section.
    new MutationObserver(() => section.isConnected || this.#close()).observe(document.body, {
      childList: true,
      subtree: true,
    })
    if ('isOn' in section.dataset) this.#toggle()
  }

  #find(name) {
    return this.#section.querySelector(`[data-${name}]`)
  }

  async #post(name, form = {}) {
    const response = await fetch(`${this.#section.dataset.liveView}/${name}`, {
      method: 'POST',
      body: new URLSearchParams(form),
    }).catch(() => undefined)
    return response?.ok === true
  }

  async #takeOver() {
    if (await this.#post('take-over')) return
    this.#find('control').textContent = 'The browser could not be taken over. Try again.'
  }

  /** The workflow continues when the page has got all input. */
  async #returnControl() {
    await this.#input.finish()
    if (await this.#post('return-control')) return
    this.#input.isEnabled = true
    this.#find('control').textContent = 'Control could not be returned. Try again.'
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
    this.#showControl(undefined)
    if (!this.#isOn || document.hidden || !this.#section.isConnected) return this.#showFrame(undefined)
    const stream = new EventSource(this.#section.dataset.liveView)
    this.#stream = stream
    const on = (name, act) => stream.addEventListener(name, ({ data }) => act(JSON.parse(data)))
    on('status', ({ text }) => this.#showStatus(text))
    on('control', (control) => this.#showControl(control))
    on('tabs', (tabs) => this.#showTabs(tabs))
    on('frame', (frame) => this.#showFrame(frame))
    on('end', () => {
      this.#close()
      this.#showControl(undefined)
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
    if (text === '') return
    this.#showFrame(undefined)
    this.#showControl(undefined)
  }

  /** @param control who controls the browser; undefined if no user can take over. */
  #showControl(control) {
    const isOwn = control?.by?.id === this.#section.dataset.user
    const [takeOver, returnControl] = [this.#find('take-over'), this.#find('return-control')]
    const had = returnControl?.hidden === false
    if (takeOver) takeOver.hidden = !control || control.by !== null
    if (returnControl) returnControl.hidden = !isOwn
    this.#find('control').textContent = describe(control, isOwn)
    this.#input.isEnabled = isOwn && control.phase === 'paused'
    if (isOwn && !had) returnControl?.focus()
  }

  #showTabs(tabs) {
    const items = tabs.map(({ url, isShown }, index) => {
      const item = document.createElement('li')
      const button = document.createElement('button')
      button.type = 'button'
      button.textContent = nameOf(url)
      button.addEventListener('click', () => this.#input.send({ type: 'tab', index }))
      if (isShown) button.setAttribute('aria-current', 'true')
      item.append(button)
      return item
    })
    this.#find('tabs').replaceChildren(...items)
    this.#find('address').textContent = tabs.find(({ isShown }) => isShown)?.url ?? ''
  }

  #showFrame(frame) {
    const image = this.#find('frame')
    image.hidden = !frame
    if (!frame) return image.removeAttribute('src')
    this.#input.size = frame
    image.width = frame.width
    image.height = frame.height
    image.src = `data:image/jpeg;base64,${frame.data}`
  }
}

function describe(control, isOwn) {
  if (!control) return ''
  const { phase, by, message } = control
  const request = message === null ? '' : `The workflow asks: ${message}`
  if (by === null) return phase === 'awaited' ? `${request} It waits until someone takes over.` : ''
  if (!isOwn) return `${by.name} has taken over.`
  if (phase === 'pausing') return 'The workflow pauses before or after its next step. Then you have control.'
  return `You have control. ${request} Mouse and keys go to the picture; Shift+Esc leaves it.`
}

/** A short name of the page at this address. */
function nameOf(url) {
  const { host, pathname } = URL.parse(url) ?? {}
  return host ? `${host}${pathname === '/' ? '' : pathname}` : url
}

for (const section of document.querySelectorAll('[data-live-view]')) new LiveView(section)
