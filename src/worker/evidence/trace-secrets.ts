/** Finds and masks secrets in the events of a Playwright trace, by their places. */
import { mask } from '../../domain/workflows/secrets.ts'

export type Json = Record<string, unknown>

/** Cookies shorter than this are words such as `true`: only their own places are masked. */
export const storedLengthMin = 8
const typedLengthMin = 4

const secretHeader = /^(proxy-)?authorization$|^(set-)?cookie$|token|secret|api-?key|session|csrf|xsrf|^x-auth/i
const secretName = /pass|pwd|secret|token|otp|authorization/i
const typingMethods = new Set(['fill', 'type', 'pressSequentially', 'press', 'insertText'])
const isKeyboard = (method: unknown) => /^keyboard/.test(String(method))
const typedMembers = ['value', 'text', 'key'] as const
/** Fields of forms, and parameters of addresses, which events have by name. */
const fieldMembers = ['params', 'formData', 'multipartData', 'queryString']

export function parseJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What the events of a trace say about secrets. */
export class TraceSecrets {
  /** Secrets that may occur anywhere. */
  readonly texts = new Set<string>()
  /** Bodies of requests and responses, by the names of their files. */
  readonly bodies = new Map<string, 'request' | 'response'>()
  /** Whether the element that a call acted on is a password field; a call without an entry may have typed anywhere. */
  readonly #isPassword = new Map<string, boolean>()
  /** What calls typed that are not known to be in an ordinary field. */
  readonly #typed = new Map<string, { texts: string[]; key: string }>()

  /** Reads an event. Read all before masking one. */
  read(event: Json): void {
    const snapshot = record(event.snapshot)
    // Also of requests that the workflow makes itself.
    if (event.type === 'before') this.#readFields(record(event.params))
    if (event.type === 'frame-snapshot') this.#readNode(snapshot.html, String(snapshot.callId), snapshot.phase)
    else if (event.type === 'resource-snapshot') this.#readNetwork(snapshot)
    else if (event.type === 'before' && (typingMethods.has(String(event.method)) || isKeyboard(event.method))) {
      const params = record(event.params)
      const texts = typedMembers.map((name) => params[name]).filter((text) => typeof text === 'string')
      this.#typed.set(String(event.callId), { texts, key: typeof params.key === 'string' ? params.key : '' })
    }
  }

  /** What was typed joins the secrets, unless it is in an ordinary field. Call it when all events have been read. */
  finish(): void {
    let pressed = ''
    for (const [callId, { texts, key }] of this.#typed) {
      // A password may be typed key by key. Longer keys have names, such as `Enter`.
      if (key.length === 1) pressed += key
      else {
        this.add(pressed)
        pressed = ''
      }
      if (this.#isPassword.get(callId) === false) this.#typed.delete(callId)
      else for (const text of texts) if (text !== key) this.add(text)
    }
    this.add(pressed)
  }

  add(text: string): void {
    if (text.length >= typedLengthMin && text !== mask) this.texts.add(text)
  }

  /** Masks secrets where they stand in the event, which it changes. */
  mask(event: Json): void {
    maskMembers(event)
    if (event.type === 'context-options') event.options = shownOptions(record(event.options))
    if (event.type === 'frame-snapshot') maskNode(record(event.snapshot).html)
    const typed = this.#typed.get(String(event.callId))
    if (typed) this.#maskTyped(event, typed.texts)
  }

  #maskTyped(event: Json, typed: readonly string[]): void {
    const params = record(event.params)
    for (const name of typedMembers) if (typeof params[name] === 'string') params[name] = mask
    // The call's log and error quote it.
    const quoted = typed.filter(({ length }) => length > 0)
    const replace = (text: string) => quoted.reduce((result, each) => result.replaceAll(each, mask), text)
    if (typeof event.message === 'string') event.message = replace(event.message)
    const error = record(event.error)
    for (const name of ['message', 'stack']) if (typeof error[name] === 'string') error[name] = replace(error[name])
  }

  /** @param node an element of a DOM snapshot: its name, its attributes and its children. */
  #readNode(node: unknown, callId: string, phase: unknown): void {
    if (!Array.isArray(node) || typeof node[0] !== 'string') return
    const attributes = record(node[1])
    const isSecret = isPasswordField(node[0], attributes)
    const value = attributes[valueAttribute]
    if (isSecret && typeof value === 'string') this.add(value)
    if (targetAttribute in attributes && (phase === 'action' || phase === 'after')) {
      this.#isPassword.set(callId, isSecret || this.#isPassword.get(callId) === true)
    }
    for (const child of node.slice(2)) this.#readNode(child, callId, phase)
  }

  /** The same values stand in addresses and in bodies. */
  #readFields(holder: Json): void {
    for (const member of fieldMembers) {
      // Files among the fields have no value.
      const fields = Array.isArray(holder[member]) ? holder[member].map(record) : []
      for (const { name, value } of fields) if (typeof value === 'string') this.#readNamed(String(name), value)
    }
    for (const text of [holder.jsonData, holder.text, holder.encodedParams])
      if (typeof text === 'string') this.readBody(text, 'request')
  }

  /** Values that the names of their members or fields call secret join the secrets: a page may show them elsewhere. */
  readBody(text: string, of: 'request' | 'response'): void {
    if (!secretName.test(text)) return
    replaceNamed(text, (name, value) => {
      // Responses also have texts for people, such as the label of a password field.
      if (of === 'request' || /^\S{8,}$/.test(value)) this.#readNamed(name, value)
      return undefined
    })
  }

  #readNamed(name: string, value: string): void {
    if (secretName.test(name)) this.add(value)
  }

  #readNetwork({ request, response }: Json): void {
    this.#readFields(record(request))
    const postData = record(record(request).postData)
    this.#readFields(postData)
    for (const [of, { _file, _sha1 }] of [
      ['response', record(record(response).content)],
      ['request', postData],
    ] as const) {
      const name = _file ?? (_sha1 && `resources/${_sha1}`)
      if (typeof name === 'string') this.bodies.set(name, of)
    }
    for (const message of [record(request), record(response)]) {
      for (const { value } of entries(message.cookies)) if (value.length >= storedLengthMin) this.texts.add(value)
      for (const { name, value } of entries(message.headers)) {
        if (!/^(proxy-)?authorization$/i.test(name)) continue
        const credentials = value.slice(value.indexOf(' ') + 1)
        this.add(credentials)
        // RFC 7617: user name and password in Base64.
        if (/^basic /i.test(value))
          this.add(
            Buffer.from(credentials, 'base64')
              .toString()
              .replace(/^[^:]*:/, ''),
          )
      }
    }
  }
}

const valueAttribute = '__playwright_value_'
const targetAttribute = '__playwright_target__'

/** Matches the elements that `isPasswordField` describes. */
export const passwordFields =
  'input:is([type="password" i], [autocomplete*="password" i], [autocomplete*="one-time-code" i], [maxlength="1"])'

/** Sites have one field for each digit of a code. */
function isPasswordField(name: string, { type, autocomplete, maxlength }: Json): boolean {
  if (name.toUpperCase() !== 'INPUT') return false
  return /^password$/i.test(String(type)) || /password|one-time-code/i.test(String(autocomplete)) || maxlength === '1'
}

function maskNode(node: unknown): void {
  if (!Array.isArray(node) || typeof node[0] !== 'string') return
  const attributes = record(node[1])
  if (isPasswordField(node[0], attributes)) {
    for (const name of [valueAttribute, 'value']) if (attributes[name]) attributes[name] = mask
  }
  for (const child of node.slice(2)) maskNode(child)
}

/** Masks the values in a body whose names say that they are secret; returns other text unchanged. */
export function maskBody(text: string): string {
  if (!secretName.test(text)) return text
  return replaceNamed(text, (name, value) => (value !== '' && secretName.test(name) ? mask : undefined))
}

const field =
  /(content-disposition:\s*form-data;[^\r\n]*\bname="([^"\r\n]*)"[^\r\n]*(?:\r?\n[^\r\n]+)*\r?\n\r?\n)(.*?)(?=\r?\n--)/gis

/** Replaces values of JSON, of a form (WHATWG URL, section 5) or of its parts (RFC 7578) by what `replace` returns for them. */
function replaceNamed(text: string, replace: (name: string, value: string) => string | undefined): string {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null) {
    let isChanged = false
    const json = JSON.stringify(value, (name, each) => {
      const replaced = typeof each === 'string' ? replace(name, each) : undefined
      isChanged ||= replaced !== undefined
      return replaced ?? each
    })
    return isChanged ? json : text
  }
  if (text.startsWith('--')) {
    return text.replaceAll(field, (all, head: string, name: string, each: string) => {
      const replaced = /\bfilename\*?=/i.test(head) ? undefined : replace(name, each)
      return replaced === undefined ? all : head + replaced
    })
  }
  if (!/^[^\s=<>{}]+=[^\s<>{}]*$/.test(text)) return text
  return text.replaceAll(/([^&=]*)=([^&]*)/g, (all, name: string, each: string) => {
    const [[decodedName = '', decoded = ''] = []] = new URLSearchParams(all)
    const replaced = replace(decodedName, decoded)
    return replaced === undefined ? all : `${name}=${each === '' ? '' : replaced}`
  })
}

/** Options of a context that show how pages were rendered. The others may have credentials. */
function shownOptions(options: Json): Json {
  const shown = [
    'viewport',
    'locale',
    'userAgent',
    'timezoneId',
    'deviceScaleFactor',
    'isMobile',
    'hasTouch',
    'baseURL',
  ]
  return Object.fromEntries(shown.filter((name) => name in options).map((name) => [name, options[name]]))
}

const secretMembers = new Set(['storageState', 'httpCredentials', 'localStorage', 'indexedDB', 'proxy'])

/** Masks headers, cookies, form fields and members that have secrets by their names. */
function maskMembers(value: unknown, member = ''): void {
  if (Array.isArray(value)) {
    for (const each of value) {
      const { name, value: text } = record(each)
      const isNamed = typeof name === 'string' && typeof text === 'string'
      const isHeader = /headers$/i.test(member) && secretHeader.test(String(name))
      const isField = fieldMembers.includes(member) && secretName.test(String(name))
      if (isNamed && (isHeader || isField || member === 'cookies')) (each as Json).value = mask
      maskMembers(each)
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, each] of Object.entries(value)) {
      if (secretMembers.has(name) && each) (value as Json)[name] = mask
      else maskMembers(each, name)
    }
  }
}

export function record(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function entries(value: unknown): { name: string; value: string }[] {
  const list = Array.isArray(value) ? value.map(record) : []
  return list.map((each) => ({ name: String(each.name), value: String(each.value) }))
}
