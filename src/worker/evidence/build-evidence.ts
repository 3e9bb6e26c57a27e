/** Turns what was recorded of a browser into artifacts without secrets. */

import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate'
import { type NewArtifact, traceBytesMax } from '../../domain/runs/artifact.ts'
import { createRedactor } from '../../domain/workflows/redactor.ts'
import { mask } from '../../domain/workflows/secrets.ts'
import type { RawEvidence } from './recorder.ts'
import { type Json, maskBody, parseJson, record, storedLengthMin, TraceSecrets } from './trace-secrets.ts'

interface KnownSecrets {
  /** Secret variables. */
  variables: readonly unknown[]
  /** The storage state that the browser started with, as JSON. */
  restored: string | undefined
}

/** Yields artifacts, the most useful and smallest first. @param attempt the number of the attempt, in their names. */
export function* buildEvidence(raw: RawEvidence, known: KnownSecrets, attempt: number): Generator<NewArtifact> {
  const prefix = `attempt-${attempt}`
  const screenshots = raw.pages.map(({ screenshot }, index) => {
    return (
      screenshot && { name: `${prefix}-page-${index + 1}.jpg`, mediaType: 'image/jpeg' as const, content: screenshot }
    )
  })
  for (const screenshot of screenshots) if (screenshot) yield screenshot
  const trace = raw.stored && maskTrace(raw, known)
  // Without the stored values, they cannot be found in titles and addresses either.
  const shown = ({ url, title }: { url: string; title: string }) =>
    trace ? trace.redact({ url, title }) : { url: url.replace(/[?#].*$/s, ''), title: mask }
  const pages = raw.pages.map((page, index) => ({ ...shown(page), screenshot: screenshots[index]?.name ?? null }))
  const summary = {
    pages,
    console: trace?.console ?? [],
    failedRequests: trace?.failedRequests ?? [],
    trace: trace?.zip ? `${prefix}-trace.zip` : null,
    ...(!raw.stored && { note: "The browser's storage could not be read, so that it could not be masked." }),
  }
  const json = Buffer.from(`${JSON.stringify(summary, null, 2)}\n`)
  yield { name: `${prefix}-browser.json`, mediaType: 'application/json', content: json }
  if (trace?.zip) yield { name: `${prefix}-trace.zip`, mediaType: 'application/zip', content: trace.zip }
}

function maskTrace(
  { collectedAt, trace, requests, stored }: RawEvidence,
  { variables, restored }: KnownSecrets,
): MaskedTrace {
  const [state, ...sessions] = stored ?? []
  const before = restored === undefined ? undefined : JSON.parse(restored)
  const texts = new Set([...storedStateTexts(state), ...storedTexts(sessions), ...storedStateTexts(before)])
  const createFrom = (found: ReadonlySet<string>) => createRedactor({ secrets: [...texts, ...found], variables })
  return new MaskedTrace(trace, createFrom, requests, collectedAt)
}

// Finds the secrets in what sites have stored: cookies, local storage and IndexedDB.

const storedPartLength = 256

/** The texts in stored values, such as cookies and local storage, which may be JSON. */
function* storedTexts(value: unknown): Generator<string> {
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
function* storedStateTexts(state: unknown): Generator<string> {
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

// Merges archives of Playwright's tracing into one archive of bounded size, with secrets masked.

type Redact = <Value>(value: Value) => Value

/** Larger files are left out, before they are unpacked. */
const eventBytesMax = 64 * 1024 ** 2
const resourceBytesMax = 4 * 1024 ** 2
/** Maximum size of unpacked text to mask, which takes 50 to 400 ms per MiB. */
const textBytesMax = 48 * 1024 ** 2
/** Maximum number of console messages, and of failed requests. */
const entriesMax = 200
const textLengthMax = 2000
/** Estimated ratio of the compressed size of text and events to their size. */
const compression = 0.25

/** Not searched for secrets: pictures, and fonts. */
const isPicture = (name: string) => /\.(png|jpe?g|gif|webp|avif|ico|bmp|woff2?|ttf|otf)$/i.test(name)
const isEvents = (name: string) => /\.(trace|network|stacks)$/.test(name)

export class MaskedTrace {
  /** Undefined if nothing was recorded, or it does not fit into the limit. */
  readonly zip: Uint8Array | undefined
  /** The last messages of pages, and errors that they did not catch. */
  readonly console: { level: string; text: string; url: string }[] = []
  readonly failedRequests: { method: string; url: string; status: number | null; error: string | null }[] = []
  readonly redact: Redact
  readonly #secrets = new TraceSecrets()
  #textBytes = 0

  /**
   * @param parts archives as Playwright writes them, oldest first. The newest are kept.
   * @param createRedactor makes a redactor that also masks the given texts.
   * @param requests events at wall-clock times, which join the newest part.
   * @param collectedAt wall-clock time from which calls are the recorder's own.
   */
  constructor(
    parts: readonly Uint8Array[],
    createRedactor: (texts: ReadonlySet<string>) => Redact,
    requests: readonly Json[] = [],
    collectedAt = Number.POSITIVE_INFINITY,
  ) {
    const isWanted = (name: string, bytes: number) => isEvents(name) && bytes <= eventBytesMax
    const events = parts.map((part) => unzip(part, isWanted).map(([name, data]) => parseEvents(name, data)))
    addRequests(events.at(-1) ?? [], requests)
    hideOwnCalls(events, collectedAt)
    for (const { lines } of events.flat()) for (const line of lines) this.#secrets.read(line)
    for (const part of parts) this.#readBodies(part)
    this.#secrets.finish()
    this.redact = createRedactor(this.#secrets.texts)
    const masked = events.map((files) => files.map((file) => this.#maskEvents(file)))
    for (const { lines } of masked.flat()) for (const line of lines) this.#summarize(line)
    this.console.splice(0, this.console.length - entriesMax)
    this.failedRequests.splice(0, this.failedRequests.length - entriesMax)
    this.zip = toZip(this.#pack(parts, masked))
  }

  /** Larger bodies are left out of the archive. */
  #readBodies(part: Uint8Array): void {
    const { bodies } = this.#secrets
    let bytes = 0
    const isWanted = (name: string, each: number) => {
      if (!bodies.has(name) || isPicture(name) || each > resourceBytesMax) return false
      bytes += each
      return bytes <= textBytesMax
    }
    for (const [name, data] of unzip(part, isWanted))
      this.#secrets.readBody(new TextDecoder().decode(data), bodies.get(name) ?? 'response')
  }

  #maskEvents({ name, lines }: EventFile): EventFile {
    return {
      name,
      lines: lines.map((line) => {
        this.#secrets.mask(line)
        return { ...this.redact(line), ...structureOf(line) }
      }),
    }
  }

  #summarize(line: Json): void {
    if (line.type === 'console') {
      const { url = '' } = line.location as { url?: string }
      this.console.push({ level: String(line.messageType), text: String(line.text).slice(0, textLengthMax), url })
    } else if (line.type === 'event' && line.method === 'pageError') {
      const { error } = line.params as { error?: { error?: { message?: string } } }
      this.console.push({ level: 'uncaught', text: String(error?.error?.message).slice(0, textLengthMax), url: '' })
    } else if (line.type === 'resource-snapshot') {
      const { request, response } = line.snapshot as {
        request: Json
        response: { status: number; _failureText?: string }
      }
      const { status, _failureText: error = null } = response
      if (error === null && status < 400) return
      const { method, url } = request as { method: string; url: string }
      this.failedRequests.push({ method, url, status: status > 0 ? status : null, error })
    }
  }

  /** The files of the archive, the newest part first, until it is full. */
  #pack(parts: readonly Uint8Array[], events: readonly (readonly EventFile[])[]): Record<string, Uint8Array> {
    const archive: Record<string, Uint8Array> = {}
    let bytes = 0
    const fits = (name: string, size: number) => {
      bytes += isPicture(name) ? size : size * compression
      return bytes <= traceBytesMax
    }
    for (let index = parts.length - 1; index >= 0; index -= 1) {
      const files = (events[index] ?? []).map(({ name, lines }) => {
        return [`${index}-${name}`, strToU8(lines.map((line) => JSON.stringify(line)).join('\n'))] as const
      })
      const size = files.reduce((sum, [, { length }]) => sum + length, 0)
      if (!fits('', size)) break
      Object.assign(archive, Object.fromEntries(files))
      const isWanted = (name: string, each: number) =>
        !isEvents(name) && this.#isSearchable(name, each) && fits(name, each)
      for (const [name, data] of unzip(parts[index] as Uint8Array, isWanted)) {
        const shown = isPicture(name) ? data : this.#maskText(data)
        if (shown) archive[name] = shown
      }
    }
    return archive
  }

  #isSearchable(name: string, bytes: number): boolean {
    if (bytes > resourceBytesMax) return false
    if (isPicture(name)) return true
    this.#textBytes += bytes
    return this.#textBytes <= textBytesMax
  }

  /** @returns undefined for data that is no text: it cannot be searched. */
  #maskText(data: Uint8Array): Uint8Array | undefined {
    try {
      return strToU8(this.redact(maskBody(new TextDecoder('utf-8', { fatal: true }).decode(data))))
    } catch {
      return undefined
    }
  }
}

interface EventFile {
  name: string
  lines: Json[]
}

function parseEvents(name: string, data: Uint8Array): EventFile {
  const lines = strFromU8(data).split('\n')
  return { name, lines: withoutLiveView(lines.filter((line) => line !== '').map((line) => JSON.parse(line))) }
}

/** Leaves out the calls by which the live view shows and controls a page: they have what a person typed. */
function withoutLiveView(lines: Json[]): Json[] {
  const calls = new Set<unknown>()
  return lines.filter(({ callId, class: type, params }) => {
    const method = String(Object(params).method)
    if (type === 'CDPSession' && /^(Page\.\w*[sS]creencast|Input\.)/.test(method)) calls.add(callId)
    return callId === undefined || !calls.has(callId)
  })
}

/** Members that the viewer interprets. A short text that was typed may equal one of their values. */
const structure = ['type', 'callId', 'parentId', 'class', 'method', 'phase', 'pageId', 'messageType', 'browserName']

function structureOf(line: Json): Json {
  return Object.fromEntries(structure.filter((name) => name in line).map((name) => [name, line[name]]))
}

/** What to add to a wall-clock time for the time of a part's clock. */
function clockShift(files: readonly EventFile[]): number {
  const options = files.flatMap(({ lines }) => lines).find(({ type }) => type === 'context-options')
  const { monotonicTime, wallTime } = options ?? {}
  return Number(monotonicTime) - Number(wallTime)
}

const noDom =
  "No DOM was recorded of this action. A first attempt records the DOM at its end only, which its last action shows; attempts after a failed one record it of each action, as all do with evidence: 'always'."
/** Each explanation takes some 400 bytes before compression. */
const explainedMax = 2000

/**
 * Leaves out the calls by which the recorder collected the evidence. If only they have the DOM, it becomes that of the
 * last action and of the one that failed, with which the viewer opens, and the others say why they have none.
 */
function hideOwnCalls(parts: readonly EventFile[][], collectedAt: number): void {
  const own = new Set<unknown>()
  for (const files of parts) {
    // Clocks are read a moment apart.
    const from = collectedAt - 1 + clockShift(files)
    for (const { type, callId, startTime } of files.flatMap(({ lines }) => lines)) {
      if (type === 'before' && Number(startTime) >= from) own.add(callId)
    }
  }
  const lines = parts.flat().flatMap((file) => file.lines)
  const calls = lines.flatMap(({ type, callId }) => (type === 'before' && !own.has(callId) ? [callId] : []))
  // The picture of the page is all that there is.
  if (calls.length === 0) return
  const snapshots = lines.flatMap(({ type, snapshot }) => (type === 'frame-snapshot' ? [record(snapshot)] : []))
  const failed = lines.findLast(
    ({ type, callId, error }) => type === 'after' && error !== undefined && !own.has(callId),
  )
  for (const file of parts.flat()) {
    file.lines = file.lines.filter(({ callId, snapshot }) => !own.has(callId) && !own.has(record(snapshot).callId))
  }
  if (snapshots.some(({ callId }) => !own.has(callId))) return
  const trace = parts.at(-1)?.find(({ name }) => name.endsWith('.trace'))
  trace?.lines.push(...lastStates(snapshots, calls, new Set([failed?.callId, calls.at(-1)])))
}

/** @param snapshots of each frame, the first is complete; others refer to earlier ones. @param shown calls that get the DOM. */
function lastStates(snapshots: readonly Json[], calls: readonly unknown[], shown: ReadonlySet<unknown>): Json[] {
  const main = snapshots.findLast(({ isMainFrame, phase }) => isMainFrame === true && phase === 'before')
  if (!main) return []
  const frames = [...Map.groupBy(snapshots, ({ frameId }) => frameId).values()].map(([first]) => record(first))
  const ofPage = frames.filter(({ pageId }) => pageId === main.pageId)
  const html = ['HTML', {}, ['BODY', {}, ['P', {}, noDom]]]
  const explained = { ...main, frameId: 'no-dom', frameUrl: 'about:blank', html, resourceOverrides: [] }
  return calls.slice(-explainedMax).flatMap((callId) => {
    const states = shown.has(callId) ? ofPage : [explained]
    return states.map((state) => ({ type: 'frame-snapshot', snapshot: { ...state, callId, phase: 'after' } }))
  })
}

/** Adds the requests to the network of a part, at the times of its clock. */
function addRequests(files: EventFile[], requests: readonly Json[]): void {
  const network = files.find(({ name }) => name.endsWith('.network'))
  const shift = clockShift(files)
  for (const { type, snapshot } of requests) {
    const { _monotonicTime, ...entry } = snapshot as Json
    network?.lines.push({ type, snapshot: { ...entry, _monotonicTime: Number(_monotonicTime) + shift } })
  }
}

function unzip(part: Uint8Array, isWanted: (name: string, bytes: number) => boolean): [string, Uint8Array][] {
  return Object.entries(unzipSync(part, { filter: ({ name, originalSize }) => isWanted(name, originalSize) }))
}

/** Drops the older half of the resources until the archive is small enough. */
function toZip(archive: Record<string, Uint8Array>): Uint8Array | undefined {
  if (!Object.keys(archive).some((name) => name.endsWith('.trace'))) return undefined
  const entries = Object.entries(archive).map(
    ([name, data]) => [name, [data, { level: isPicture(name) ? 0 : 6 }]] as const,
  )
  const zip = zipSync(Object.fromEntries(entries) as Parameters<typeof zipSync>[0])
  if (zip.length <= traceBytesMax) return zip
  const resources = Object.keys(archive).filter((name) => !isEvents(name))
  if (resources.length === 0) return undefined
  const dropped = new Set(resources.slice(Math.floor(resources.length / 2)))
  return toZip(Object.fromEntries(Object.entries(archive).filter(([name]) => !dropped.has(name))))
}
