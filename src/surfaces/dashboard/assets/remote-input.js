/** Mouse and keyboard on the picture of a remote page, collected into requests. */

const buttons = ['left', 'middle', 'right']
const moveMilliseconds = 50

export class RemoteInput {
  /** Size of the remote page in CSS pixels. */
  size = { width: 1, height: 1 }
  #element
  /** Has the focus while the page is controlled: input methods and the clipboard work with editable elements only. */
  #keys = document.createElement('textarea')
  #post
  #isEnabled = false
  #waiting = []
  /** Resolves when all input that waited at its start has arrived; undefined if none waits. */
  #sending
  #movedAt = 0

  /** @param post sends inputs; resolves when they have arrived. */
  constructor(element, post) {
    this.#element = element
    this.#post = post
    const listen = (name, act) =>
      element.addEventListener(name, (event) => this.#isEnabled && act(event), { passive: false })
    listen('mousemove', (event) => this.#move(event))
    listen('mousedown', (event) => {
      event.preventDefault()
      // Scrolling would move the picture under the mouse.
      this.#keys.focus({ preventScroll: true })
      this.#mouse(event, 'mousePressed')
    })
    listen('mouseup', (event) => this.#mouse(event, 'mouseReleased'))
    listen('contextmenu', (event) => event.preventDefault())
    listen('wheel', (event) => {
      event.preventDefault()
      const { deltaX, deltaY } = event
      this.send({ type: 'wheel', ...this.#at(event), deltaX, deltaY })
    })
    listen('keydown', (event) => this.#key(event, 'keyDown'))
    listen('keyup', (event) => this.#key(event, 'keyUp'))
    listen('paste', (event) => {
      event.preventDefault()
      this.#text(event.clipboardData.getData('text'))
    })
    // What input methods, dead keys and the keyboards of phones write.
    listen('compositionend', () => this.#takeText())
    listen('input', (event) => !event.isComposing && this.#takeText())
    listen('beforeinput', ({ inputType }) => inputType === 'deleteContentBackward' && this.#press('Backspace', 8))
    this.#keys.setAttribute('aria-label', 'Remote page. Shift+Esc leaves it.')
    for (const name of ['autocomplete', 'autocapitalize', 'spellcheck']) this.#keys.setAttribute(name, 'off')
  }

  set isEnabled(isEnabled) {
    this.#isEnabled = isEnabled
    this.#element.toggleAttribute('data-controlled', isEnabled)
    if (!isEnabled) this.#keys.remove()
    else if (!this.#keys.isConnected) this.#element.append(this.#keys)
  }

  send(input) {
    if (!this.#isEnabled) return
    this.#waiting.push(input)
    this.#sending ??= this.#sendWaiting()
  }

  /** Resolves when all input so far has arrived. Input that follows is dropped until the element is enabled again. */
  async finish() {
    this.isEnabled = false
    await this.#sending
  }

  async #sendWaiting() {
    while (this.#waiting.length > 0) await this.#post(this.#waiting.splice(0, 100))
    this.#sending = undefined
  }

  #at(event) {
    const { left, top, width, height } = this.#element.getBoundingClientRect()
    const x = Math.round(((event.clientX - left) / width) * this.size.width)
    const y = Math.round(((event.clientY - top) / height) * this.size.height)
    return { x, y, modifiers: modifiersOf(event) }
  }

  #move(event) {
    if (event.timeStamp - this.#movedAt < moveMilliseconds) return
    this.#movedAt = event.timeStamp
    const pressed = event.buttons & 1 ? 'left' : 'none'
    this.send({ type: 'mouse', event: 'mouseMoved', ...this.#at(event), button: pressed, clickCount: 0 })
  }

  #mouse(event, type) {
    const button = buttons[event.button] ?? 'none'
    this.send({ type: 'mouse', event: type, ...this.#at(event), button, clickCount: Math.max(1, event.detail) })
  }

  #key(event, type) {
    if (event.key === 'Escape' && event.shiftKey) return this.#keys.blur()
    // An input method has the key. Its text follows.
    if (event.isComposing || event.keyCode === 229 || event.key === 'Dead') return
    const isShortcut = event.ctrlKey || event.metaKey
    // The paste event has the text.
    if (isShortcut && event.key.toLowerCase() === 'v') return
    event.preventDefault()
    const { key, code, keyCode } = event
    const text = isShortcut ? '' : key === 'Enter' ? '\r' : [...key].length === 1 ? key : ''
    this.send({ type: 'key', event: type, key, code, keyCode, text, modifiers: modifiersOf(event) })
  }

  #press(key, keyCode) {
    const pressed = { type: 'key', key, code: key, keyCode, text: '', modifiers: 0 }
    for (const event of ['keyDown', 'keyUp']) this.send({ ...pressed, event })
  }

  #takeText() {
    const text = this.#keys.value
    this.#keys.value = ''
    this.#text(text)
  }

  #text(text) {
    if (text !== '') this.send({ type: 'text', text: text.slice(0, 10_000) })
  }
}

function modifiersOf({ altKey, ctrlKey, metaKey, shiftKey }) {
  return (altKey ? 1 : 0) + (ctrlKey ? 2 : 0) + (metaKey ? 4 : 0) + (shiftKey ? 8 : 0)
}
