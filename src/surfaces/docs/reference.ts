/** The reference: Redoc, which draws a document in the browser, and what it is given. */
import { readFileSync } from 'node:fs'
import { addressed, type Contract } from './contracts.ts'
import { type Sample, samplesOf } from './samples.ts'

/**
 * Redoc as a classic script, because browsers load no modules from files. `import.meta` stands in a branch for Node, and
 * is a syntax error outside of modules. What it would fetch from its maker's hosts is drawn here, or not at all.
 */
export function redocScript(): string {
  const file = new URL(import.meta.resolve('@redocly/cli/lib/chunks/redoc.standalone.js'))
  const logo = `data:image/svg+xml,${encodeURIComponent(wordmark)}`
  const source = replaced(readFileSync(file, 'utf8'), /export\{RedocStandalone,hydrate,init\};\s*$/, '')
  const offline = replaced(source, /https:\/\/cdn\.redoc\.ly\/redoc\/logo-mini(-full)?\.svg/g, logo)
  const silent = replaced(offline, /https:\/\/(otel\.cloud|cdn)\.redocly\.com\/[\w./]*/g, '')
  return `'use strict';${replaced(silent, /\bimport\.meta\b/g, '({})')}`
}

const wordmark =
  '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="16"><text x="0" y="12" font-family="sans-serif" font-size="12" fill="#6b7280">Redoc</text></svg>'

/** Another version of Redoc may need other changes: better no docs than docs that call somebody. */
function replaced(text: string, pattern: RegExp, replacement: string): string {
  if (text.search(pattern) < 0) throw new Error(`Redoc has no ${pattern} any more: see to what the docs change in it.`)
  return text.replace(pattern, () => replacement)
}

/** The document as a script, since files load no data; parsed as JSON, in which `__proto__` is a name like any other. */
export function documentScript(contract: Contract): string {
  return `globalThis.docsDocument = JSON.parse(${JSON.stringify(JSON.stringify(shown(contract)))})\n`
}

/** The document with code samples and the addresses that its readers reach. */
function shown(contract: Contract): object {
  const { document, operations, documentedUrl, shownUrl } = contract
  const copy = structuredClone(document)
  if (shownUrl !== documentedUrl) copy.servers = [{ url: shownUrl, description: 'This service.' }]
  for (const { id, path, method } of operations) {
    const operation = copy.paths[path]?.[method]
    if (operation)
      Object.assign(operation, {
        'x-codeSamples': samplesOf(id).map((sample) => shownSample(sample, contract)),
      })
  }
  return copy
}

/** Redoc colours code by the language, and names it by the label. */
function shownSample({ lang, source }: Sample, contract: Contract) {
  return { lang: lang === 'curl' ? 'Shell' : lang, label: lang, source: addressed(source, [contract]) }
}
