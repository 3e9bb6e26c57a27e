/**
 * Renders the API reference with `redocly build-docs`, which turns a document into one HTML page that works offline. The
 * published package has the result in a file, with placeholders for the addresses, and not Redocly.
 */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { stringify } from 'yaml'
import { type Document, type MediaTypeObject, resolve, type Schema, walk } from '../../openapi/document.ts'
import { createTemporaryDirectory } from '../../storage/temporary-directory.ts'
import { type Contract, type ContractTag, readContracts, samplesFor, withAddresses } from './contracts.ts'

export interface Reference {
  /** Redoc as a classic script, the same for all pages. */
  redoc: string
  /** By name, without `.html`. */
  pages: Record<string, ReferencePart>
}

/** What Redocly writes of a page: styles, and the rendered document with the script that makes it interactive. */
interface ReferencePart {
  head: string
  body: string
  /** Begins with the document, and passes it to Redoc's `hydrate`. */
  rest: string
}

const builtFile = new URL('../../../docs/reference.json.gz', import.meta.url)

const placeholders: Record<string, string> = {
  execution: 'http://execution.invalid',
  'browser-context': 'http://browser-context.invalid',
}

/** The content of the file that the published package has. */
export async function buildReferenceFile(): Promise<Buffer> {
  return renderOnce(readContracts(placeholders))
}

export async function readReference(contracts: readonly Contract[]): Promise<Reference> {
  if (existsSync(builtFile)) return readFor(contracts, await readFile(builtFile))
  // As it is documented.
  if (contracts.every(({ documentedUrl, shownUrl }) => documentedUrl === shownUrl))
    return readFor([], await renderOnce(contracts))
  return readFor(contracts, await buildReferenceFile())
}

async function readFor(contracts: readonly Contract[], file: Buffer): Promise<Reference> {
  const { redoc, pages }: Reference = JSON.parse(String(await promisify(gunzip)(file)))
  const withUrls = (text: string) =>
    contracts.reduce((shown, { page, shownUrl }) => shown.replaceAll(placeholders[page] ?? shownUrl, shownUrl), text)
  const parts = Object.entries(pages).map(([name, { head, body, rest }]) => [
    name,
    { head, body: withUrls(body), rest: withUrls(rest) },
  ])
  return { redoc, pages: Object.fromEntries(parts) }
}

const cache = new URL('../../../node_modules/.cache/reference/', import.meta.url)

/** Renders the reference unless a file in the cache has it: the pages take 10 seconds of CPU. */
async function renderOnce(contracts: readonly Contract[]): Promise<Buffer> {
  const file = new URL(`${hash('sha256', JSON.stringify(renderingInputs(contracts)))}.json.gz`, cache)
  if (existsSync(file)) return readFile(file)
  const content = await promisify(gzip)(JSON.stringify(await renderReference(contracts)), { level: 9 })
  const temporary = new URL(`${file.href}.${process.pid}`)
  await mkdir(cache, { recursive: true })
  await writeFile(temporary, content)
  await rename(temporary, file)
  return content
}

/** Everything that the rendered reference depends on. */
function renderingInputs(contracts: readonly Contract[]): unknown[] {
  const sources = [
    import.meta.url,
    ...['@redocly/cli', 'rolldown'].map((name) => import.meta.resolve(`${name}/package.json`)),
  ]
  const documents = contracts.map((contract) => contract.tags.map((tag) => documentForReaders(contract, tag)))
  return [...sources.map((url) => readFileSync(new URL(url), 'utf8')), documents]
}

/** Redocly runs in child processes: one at a time for each document, because each takes 150 MB. */
async function renderReference(contracts: readonly Contract[]): Promise<Reference> {
  const rendered = (await Promise.all(contracts.map(renderPages))).flat()
  const redoc = await globalScript(rendered[0]?.redoc ?? '')
  return { redoc, pages: Object.fromEntries(rendered.map(({ name, part }) => [name, part])) }
}

const moduleTag = '<script type="module">'

/** @param template the page around the reference, with the places for its two parts. */
export function referencePage(template: string, script: string, part: ReferencePart | undefined): string {
  if (!part) throw new Error('The reference was built from other documents: build the package again.')
  const { head, body, rest } = part
  const content = `${body}<script src="${script}"></script>\n${moduleTag}const { hydrate } = redoc\n${rest}`
  return template.replace('{{{redocHead}}}', () => head).replace('{{{redocHTML}}}', () => content)
}

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

/** Redocly's decorators, by which a page has the operations of one tag and the components that they need. */
const configuration = (tag: string) => ({
  decorators: { 'filter-in': { property: 'tags', value: [tag] }, 'remove-unused-components': 'on' },
})

interface RenderedPage {
  name: string
  redoc: string
  part: ReferencePart
}

async function renderPages(contract: Contract): Promise<RenderedPage[]> {
  const pages: RenderedPage[] = []
  for (const tag of contract.tags) pages.push(splitPage(tag.page, await renderPage(contract, tag)))
  return pages
}

const separator = '<!-- reference -->'

async function renderPage(contract: Contract, tag: ContractTag): Promise<string> {
  const { path: directory, remove } = createTemporaryDirectory('docs')
  const file = (name: string) => join(directory, name)
  try {
    await writeFile(file('document.json'), JSON.stringify(documentForReaders(contract, tag)))
    await writeFile(file('redocly.yaml'), stringify(configuration(tag.name)))
    await writeFile(file('page.hbs'), `{{{redocHead}}}${separator}{{{redocHTML}}}`)
    const args = ['build-docs', 'document.json', '--inlineBundle', '-t', 'page.hbs', '-o', 'page.html', ...redocOptions]
    const environment = { PATH: process.env.PATH, TMPDIR: tmpdir(), ...offline }
    const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
    await promisify(execFile)(process.execPath, [redocly, ...args], { cwd: directory, env: environment })
    return await readFile(file('page.html'), 'utf8')
  } finally {
    remove()
  }
}

/** Redocly writes Redoc's 2.3 MB into each page, as a module that goes on with the page's document. */
function splitPage(name: string, html: string): RenderedPage {
  const middle = html.indexOf(separator)
  const start = html.indexOf(moduleTag, middle)
  const end = html.indexOf('const __redoc_definition', start)
  if (middle < 0 || start < 0 || end < 0) throw new Error(`${name} does not contain Redoc as earlier versions do.`)
  const part = {
    head: html.slice(0, middle),
    body: html.slice(middle + separator.length, start),
    rest: html.slice(end),
  }
  return { name, redoc: html.slice(start + moduleTag.length, end), part }
}

/** The module as a classic script with the global `redoc`: a page that is opened as a file may not import a module. */
async function globalScript(module: string): Promise<string> {
  const plugin = { name: 'redoc', resolveId: (id: string) => id, load: () => module }
  const { rolldown } = await import('rolldown')
  await using build = await rolldown({ input: 'redoc.js', plugins: [plugin], treeshake: false, logLevel: 'silent' })
  const { output } = await build.generate({ format: 'iife', name: 'redoc', minify: { compress: false, mangle: false } })
  return output[0].code
}

/** The document of a tag's page, with the members of events, and the code samples of each operation. */
function documentForReaders(contract: Contract, tag: ContractTag): Document {
  const { document, page, title } = contract
  const copy = structuredClone(document)
  const others = contract.tags.filter((each) => each !== tag).map((each) => `[${each.name}](${each.page}.html)`)
  const links = `See also the [overview](${page}.html), ${others.join(', ')}.`
  Object.assign(copy.info, { title: `${title}: ${tag.name}`, summary: tag.description, description: links })
  copy.tags = copy.tags.filter(({ name }) => name === tag.name)
  for (const { value } of walk(copy.paths)) showEvents(copy, value)
  for (const { id, path, method } of tag.operations) {
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

if (import.meta.main) await writeFile(builtFile, await buildReferenceFile())
