/** Renders the API reference with `redocly build-docs`, which turns a document into one HTML page that works offline. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Document, type MediaTypeObject, resolve, type Schema, walk } from '../../openapi/document.ts'
import { type Contract, samplesFor, withAddresses } from './contracts.ts'

const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))

/** https://redocly.com/docs/redoc/v3.x/config */
const redocOptions = [
  '--openapi.hideDownloadButtons=true',
  '--openapi.sortRequiredPropsFirst=true',
  '--openapi.jsonSamplesExpandLevel=4',
  // Headings stop below the bar at the top of the page.
  '--openapi.scrollYOffset=.bar',
]

/** Also turns off telemetry in the page. */
const offline = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/**
 * Returns the page's HTML.
 *
 * @param template the page around the reference, as a Handlebars template with `redocHead` and `redocHTML`.
 */
export async function renderReference(contract: Contract, template: string): Promise<string> {
  // A directory without a redocly.yaml, whose settings would apply here too.
  const directory = await mkdtemp(join(tmpdir(), 'reference-'))
  const file = (name: string) => join(directory, name)
  try {
    await writeFile(file('document.json'), JSON.stringify(documentForReaders(contract)))
    await writeFile(file('page.hbs'), template)
    const args = ['build-docs', 'document.json', '--inlineBundle', '-t', 'page.hbs', '-o', 'page.html', ...redocOptions]
    const environment = { PATH: process.env.PATH, TMPDIR: tmpdir(), ...offline }
    await promisify(execFile)(process.execPath, [redocly, ...args], { cwd: directory, env: environment })
    return await readFile(file('page.html'), 'utf8')
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** The document with the members of events, and the code samples of each operation. */
function documentForReaders(contract: Contract): Document {
  const { document, operations } = contract
  const copy = structuredClone(document)
  for (const { value } of walk(copy.paths)) showEvents(copy, value)
  for (const { id, path, method } of operations) {
    const samples = samplesFor(id).map(({ lang, source }) => ({
      // Redoc highlights by `lang` and shows `label`.
      lang: lang === 'curl' ? 'Shell' : lang,
      label: lang,
      source: withAddresses(source, [contract]),
    }))
    Object.assign(copy.paths[path]?.[method] ?? {}, { 'x-codeSamples': samples })
  }
  return copy
}

/** Redoc shows only the `schema` of a stream, which is a string: shows the schema of its events in its place. */
function showEvents(document: Document, content: unknown): void {
  const stream = (Object(content) as Record<string, MediaTypeObject>)['text/event-stream']
  const { contentSchema, description } = stream?.schema ?? {}
  if (stream && contentSchema) stream.schema = { ...resolve<Schema>(document, contentSchema), description }
}
