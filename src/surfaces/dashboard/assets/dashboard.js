/**
 * Enhances pages that work without it: copies text, keeps elements up to date, and removes secrets when a page is left.
 * Times in the user's time zone are rendered by the `relative-time` element.
 */
import { Idiomorph } from './idiomorph.js'
import './command-menu.js'
import './live-view.js'
import './relative-time.js'

/** Shows the buttons with `data-copy`, which copy the text of the element that they select. */
function showCopyButtons() {
  // Only secure contexts have a clipboard: not pages over plain HTTP from another machine.
  if (!navigator.clipboard) return
  for (const button of document.querySelectorAll('button[data-copy]')) button.hidden = false
}

document.addEventListener('click', async (event) => {
  const button = event.target instanceof Element && event.target.closest('button[data-copy]')
  if (!button) return
  const text = document.querySelector(button.dataset.copy)?.textContent ?? ''
  await navigator.clipboard.writeText(text)
  const [label, name] = [button.textContent, button.getAttribute('aria-label')]
  button.textContent = 'Copied'
  button.removeAttribute('aria-label')
  setTimeout(() => {
    button.textContent = label
    if (name) button.setAttribute('aria-label', name)
  }, 2000)
})

/** Switches between light and dark colours; the docs share the choice. */
function enableThemeButton(button) {
  const update = () => button.setAttribute('aria-pressed', String(docsTheme.isDark()))
  button.hidden = false
  button.addEventListener('click', () => docsTheme.toggle())
  document.documentElement.addEventListener('themechange', update)
  update()
}

/** Filters apply at once. Times do not: browsers report each digit as a change. */
function submitOnChange(form) {
  form.addEventListener('change', ({ target }) => target instanceof HTMLSelectElement && form.requestSubmit())
}

/** Sets the time zone in which the user enters times, and shows its name. */
function setZone(input) {
  input.value = Intl.DateTimeFormat().resolvedOptions().timeZone
  document.querySelector(input.dataset.zone).textContent = input.value
}

const typingMilliseconds = 250

/** Shows a schedule's next times, or what is wrong with the entered ones, while its form is filled in. */
function showNextTimes(output) {
  const names = ['cron', 'timeZone', 'intervalSeconds']
  const source = new URL(output.dataset.nextTimes, location)
  let timer
  let request
  output.form.addEventListener('input', ({ target }) => {
    if (!names.includes(target.name)) return
    clearTimeout(timer)
    request?.abort()
    timer = setTimeout(() => load().catch(() => {}), typingMilliseconds)
  })
  async function load() {
    request = new AbortController()
    for (const name of names) source.searchParams.set(name, output.form.elements[name].value)
    const response = await fetch(source, { signal: request.signal })
    // The user signed out in another tab.
    if (response.ok && !response.redirected) output.innerHTML = await response.text()
  }
}

/** Lets the user choose a file in place of entering the ID of one, which the field gets when the file is uploaded. */
function enableUpload(field) {
  const input = document.createElement('input')
  const status = document.createElement('small')
  Object.assign(input, { type: 'file', ariaLabel: `File for ${field.labels[0]?.textContent.trim()}` })
  status.role = 'status'
  field.before(input)
  field.after(status)
  const buttons = field.form.querySelectorAll('button')
  input.addEventListener('change', async () => {
    const [file] = input.files
    if (!file) return
    status.textContent = `Uploading ${file.name}…`
    for (const button of buttons) button.disabled = true
    try {
      const headers = { 'Content-Type': file.type || 'application/octet-stream' }
      const path = `${field.dataset.upload}?name=${encodeURIComponent(file.name)}`
      const response = await fetch(path, { method: 'POST', headers, body: file })
      const text = response.redirected ? 'Sign in again.' : await response.text()
      if (response.ok && !response.redirected) field.value = text
      status.textContent = response.ok && !response.redirected ? `Uploaded ${file.name}.` : text
    } catch {
      status.textContent = 'The file was not uploaded. Try again.'
    }
    for (const button of buttons) button.disabled = false
  })
}

const reconnectMilliseconds = 5000

/** Minimum time between two reloads of an element. */
const reloadMilliseconds = 300

/** Reloads an element with `data-live` from the page's own address whenever the event stream at that path says so. */
class LiveElement {
  #stream
  #element
  #isStale = false
  #isReloading = false
  /** The content no longer changes, or the user may no longer see it. */
  #isClosed = false

  constructor(element) {
    this.#element = element
    // Browsers limit the connections per host: hidden pages hold none.
    document.addEventListener('visibilitychange', () => this.#connect())
    this.#connect()
  }

  #connect() {
    this.#stream?.close()
    this.#stream = undefined
    if (this.#isClosed || document.hidden) return
    const stream = new EventSource(this.#element.dataset.live)
    this.#stream = stream
    stream.addEventListener('change', () => this.#reload())
    // Browsers reconnect after a broken connection, but not after an error response, such as a proxy's.
    stream.addEventListener('error', () => {
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => this.#reconnect(), reconnectMilliseconds)
    })
    stream.addEventListener('end', () => {
      this.#isClosed = true
      stream.close()
      this.#reload()
    })
  }

  async #reconnect() {
    await this.#reload()
    this.#connect()
  }

  async #reload() {
    this.#isStale = true
    if (this.#isReloading) return
    this.#isReloading = true
    while (this.#isStale) {
      this.#isStale = false
      await this.#update().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, reloadMilliseconds))
    }
    this.#isReloading = false
  }

  async #update() {
    const response = await fetch(location.href, { headers: { Accept: 'text/html', 'X-Background': '1' } })
    // The user signed out in another tab, or the item was deleted: the page keeps its last content.
    if (response.redirected || response.status === 404) {
      this.#isClosed = true
      this.#stream?.close()
    }
    if (response.redirected || !response.ok) return
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const updated = page.getElementById(this.#element.id)
    if (!updated) return
    // The user has switched in another tab: what is shown below stays that of the header.
    if (page.body.dataset.environment !== document.body.dataset.environment) return
    document.title = page.title
    const icon = document.querySelector('link[rel=icon]')
    const { href } = page.querySelector('link[rel=icon]')
    if (icon.href !== href) icon.href = href
    Idiomorph.morph(this.#element, updated.innerHTML, {
      morphStyle: 'innerHTML',
      ignoreActiveValue: true,
      callbacks: {
        // A script changes it.
        beforeNodeMorphed: (node) => !(node instanceof Element && node.matches('[data-live-view]')),
        // Keeps what the user has opened.
        beforeAttributeUpdated: (name) => name !== 'open' && name !== 'hidden',
      },
    })
    showCopyButtons()
  }
}

/** The tabs scroll on a phone. `scrollIntoView` would make the first Tab key start from the current tab. */
function showCurrentTab() {
  const tabs = document.querySelector('.tabs')
  const current = tabs?.querySelector('[aria-current]')
  if (!tabs || !current) return
  const [outer, inner] = [tabs.getBoundingClientRect(), current.getBoundingClientRect()]
  tabs.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2
}

/** The service refuses a form when the user has switched to another environment in another tab since. */
function nameEnvironment() {
  const { environment } = document.body.dataset
  if (environment === undefined) return
  document.addEventListener('formdata', ({ target, formData }) => {
    if (target.method === 'post' && !target.matches('.environment')) formData.set('shownEnvironment', environment)
  })
}

showCopyButtons()
showCurrentTab()
nameEnvironment()
for (const button of document.querySelectorAll('button.theme')) enableThemeButton(button)
for (const form of document.querySelectorAll('[data-submit-on-change]')) submitOnChange(form)
for (const input of document.querySelectorAll('[data-zone]')) setZone(input)
for (const output of document.querySelectorAll('[data-next-times]')) showNextTimes(output)
for (const field of document.querySelectorAll('input[data-upload]')) enableUpload(field)
for (const element of document.querySelectorAll('[data-live]')) new LiveElement(element)

// Browsers may restore the page from memory when the user navigates back.
addEventListener('pagehide', () => {
  for (const element of document.querySelectorAll('[data-once]')) element.textContent = 'not shown again'
})
