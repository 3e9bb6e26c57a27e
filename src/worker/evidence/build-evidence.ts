/** Turns what was recorded of a browser into artifacts without secrets. */
import type { NewArtifact } from '../../domain/runs/artifact-limits.ts'
import { createRedactor, mask } from '../../domain/workflows/secrets.ts'
import { MaskedTrace } from './masked-trace.ts'
import type { RawEvidence } from './recorder.ts'
import { storedStateTexts, storedTexts } from './stored-texts.ts'

export interface KnownSecrets {
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
    trace ? trace.redact({ url, title }) : { url: withoutQuery(url), title: mask }
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

function maskTrace({ trace, requests, stored }: RawEvidence, { variables, restored }: KnownSecrets): MaskedTrace {
  const [state, ...sessions] = stored ?? []
  const before = restored === undefined ? undefined : JSON.parse(restored)
  const texts = new Set([...storedStateTexts(state), ...storedTexts(sessions), ...storedStateTexts(before)])
  const createFrom = (found: ReadonlySet<string>) => {
    const all = [...texts, ...found, ...stringsIn(variables)]
    return createRedactor({ secrets: [...all, ...all.flatMap(spellings)] })
  }
  return new MaskedTrace(trace, createFrom, requests)
}

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string' || typeof value === 'number') yield String(value)
  else if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) yield* stringsIn(each)
}

/** The text as forms (WHATWG URL, `application/x-www-form-urlencoded`), HTML and URLs encode it, where that differs. */
function spellings(text: string): string[] {
  const form = new URLSearchParams({ '': text }).toString().slice(1)
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return [form, html, html.replaceAll('"', '&quot;'), encodeURI(text.toWellFormed())].filter((each) => each !== text)
}

function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
