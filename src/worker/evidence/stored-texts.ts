/** Finds the secrets in what sites have stored: cookies, local storage and IndexedDB. */
import { parseJson, record, storedLengthMin } from './trace-secrets.ts'

const storedPartLength = 256

/** The texts in stored values, such as cookies and local storage, which may be JSON. */
export function* storedTexts(value: unknown): Generator<string> {
  if (typeof value === 'string') {
    const parsed = parseJson(value)
    if (typeof parsed === 'object' && parsed !== null) yield* storedTexts(parsed)
    if (value.length < storedLengthMin) return
    // A long text is masked in parts: as one pattern it would be slow.
    for (let from = 0; from < value.length; from += storedPartLength) yield value.slice(from, from + storedPartLength)
  } else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) yield* storedTexts(each)
  }
}

/** The same for a storage state of Playwright. Where its cookies and origins belong to is no secret. */
export function* storedStateTexts(state: unknown): Generator<string> {
  const { cookies, origins } = record(state)
  for (const cookie of Array.isArray(cookies) ? cookies : []) {
    const { domain: _domain, path: _path, sameSite: _sameSite, ...stored } = record(cookie)
    yield* storedTexts(stored)
  }
  for (const each of Array.isArray(origins) ? origins : []) {
    const { origin: _origin, ...stored } = record(each)
    yield* storedTexts(stored)
  }
}
