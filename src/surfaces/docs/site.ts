/**
 * Builds the docs as a set of files in memory. All files are in one folder and link to each other relatively, so the
 * same files work on a server and from a disk.
 */

import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { type Document, type MediaTypeObject, resolve, type Schema, walk } from '../../openapi/document.ts'
import { createTemporaryDirectory } from '../../storage/temporary-directory.ts'
import {
  type Addresses,
  type Contract,
  type ContractTag,
  readContracts,
  samplesFor,
  withAddresses,
} from './contracts.ts'
import { type Guide, readGuides, readOverviews } from './guides.ts'
import { guidePage, type Layout, notFoundPage, referenceTemplate, workflowPageTemplate } from './page-layout.ts'
import { searchScript } from './search-index.ts'
import { readExamples } from './workflow-pages.ts'

export interface SiteFile {
  mediaType: string
  content: Uint8Array
  /** SHA-256 of the content, shortened. */
  digest: string
  /** The name contains the digest, so browsers may cache the file for good. */
  immutable: boolean
  /** CSP hash sources of the page's inline scripts. */
  scriptHashes: readonly string[]
}

/** By file name. */
export type Site = Map<string, SiteFile>

/** The docs without the pages of the reference, which take most of the time. */
export interface Docs {
  site: Site
  /** Names of the pages of the reference, without `.html`. */
  references: readonly string[]
  /** For the pages of an account's workflows, which are not part of the site. */
  workflowPageTemplate: string
}

/** @param addresses of the APIs, shown in guides and samples; by default those in the documents. */
export async function buildDocs(addresses: Addresses = {}): Promise<Docs> {
  const site: Site = new Map()
  const layout = createLayout(site, addresses)
  const { contracts, guides } = layout
  const add = (name: string, content: string | Buffer) => site.set(name, siteFile(name, content))
  for (const guide of [...guides, ...readOverviews(contracts)]) {
    add(`${guide.name}.html`, await guidePage(layout, guide))
    add(`${guide.name}.md`, guide.markdown)
  }
  for (const { file, document } of contracts) {
    add(`${file}.json`, `${JSON.stringify(document, null, 2)}\n`)
    add(`${file}.yaml`, stringify(document, { aliasDuplicateObjects: false, lineWidth: 120 }))
  }
  add('llms.txt', llmsText(guides, contracts))
  add('llms-full.txt', guides.map(({ markdown }) => markdown.trim()).join('\n\n'))
  add('404.html', await notFoundPage(layout))
  const references = contracts.flatMap(({ tags }) => tags.map(({ page }) => page))
  return { site, references, workflowPageTemplate: await workflowPageTemplate(layout) }
}

/** The pages of the reference, and their script. */
export async function buildReferences(addresses: Addresses = {}): Promise<Site> {
  const layout = createLayout(new Map(), addresses)
  // Redocly runs in child processes: one at a time for each document, because each takes 150 MB.
  const pages = (await Promise.all(layout.contracts.map((contract) => renderReferences(layout, contract)))).flat()
  const site: Site = new Map()
  const script = addImmutable(site, 'redoc.js', await globalScript(pages[0]?.redoc ?? ''))
  for (const { name, head, rest } of pages) {
    const html = `${head}<script src="${script}"></script>\n${moduleTag}const { hydrate } = redoc\n${rest}`
    site.set(name, { ...siteFile(name, html), scriptHashes: inlineScriptHashes(html) })
  }
  return site
}

/** All files. */
export async function docsSite(addresses?: Addresses): Promise<Site> {
  const [{ site }, references] = await Promise.all([buildDocs(addresses), buildReferences(addresses)])
  return new Map([...site, ...references])
}

/** Adds what all pages load. */
function createLayout(site: Site, addresses: Addresses) {
  const contracts = readContracts(addresses)
  const guides = [...readGuides(contracts), ...readExamples(contracts)]
  const assets = addAssets(site, searchScript(guides, contracts))
  const workflowsUrl = addresses.dashboard && `${addresses.dashboard}/docs/workflows/`
  return { assets, guides, contracts, workflowsUrl, dashboardUrl: addresses.dashboard }
}

const guideStyles = ['guide.css', 'article.css', 'code.css']

/** File names of what pages load. */
export type Assets = ReturnType<typeof addAssets>

function addAssets(site: Site, index: string) {
  const own = (name: string) => readFileSync(new URL(`./assets/${name}`, import.meta.url))
  const fromDashboard = (name: string) => readFileSync(new URL(`../dashboard/assets/${name}`, import.meta.url))
  const fromPackage = (specifier: string, path = '') => readFileSync(new URL(path, import.meta.resolve(specifier)))
  const shared = [fromDashboard('base.css'), own('bar.css'), own('search.css')]
  return {
    pico: addImmutable(site, 'pico.css', fromPackage('@picocss/pico/css/pico.indigo.min.css')),
    docs: addImmutable(site, 'docs.css', Buffer.concat([...shared, ...guideStyles.map(own)])),
    reference: addImmutable(site, 'reference.css', Buffer.concat([...shared, own('reference.css')])),
    theme: addImmutable(site, 'theme.js', own('theme.js')),
    script: addImmutable(site, 'docs.js', own('docs.js')),
    minisearch: addImmutable(site, 'minisearch.js', fromPackage('minisearch', '../umd/index.js')),
    index: addImmutable(site, 'search-index.js', index),
    icon: addImmutable(site, 'icon.svg', fromDashboard('icon.svg')),
  }
}

const mediaTypes: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  yaml: 'application/yaml',
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  svg: 'image/svg+xml',
}

function siteFile(name: string, content: string | Buffer, immutable = false): SiteFile {
  const bytes = Buffer.from(content)
  const mediaType = mediaTypes[name.slice(name.lastIndexOf('.') + 1)]
  if (!mediaType) throw new Error(`${name} has no media type: add it to src/surfaces/docs/site.ts.`)
  const digest = hash('sha256', bytes, 'base64url').slice(0, 12)
  return { mediaType, content: bytes, digest, immutable, scriptHashes: [] }
}

/** Adds the file under a name that contains its digest, and returns that name. */
function addImmutable(site: Site, name: string, content: string | Buffer): string {
  const file = siteFile(name, content, true)
  const dot = name.lastIndexOf('.')
  const immutableName = `${name.slice(0, dot)}.${file.digest}${name.slice(dot)}`
  site.set(immutableName, file)
  return immutableName
}

/** CSP Level 3, section 2.3.1: the hash covers the text between the tags. */
function inlineScriptHashes(html: string): string[] {
  const scripts = html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>(.*?)<\/script>/gs)
  return [...scripts].map(([, text = '']) => `'sha256-${hash('sha256', text, 'base64')}'`)
}

/** An overview of the docs for language models (https://llmstxt.org). */
function llmsText(guides: readonly Guide[], contracts: readonly Contract[]): string {
  const documents = contracts.flatMap(({ file, title, version, summary }) => [
    `- [${title} ${version}](${file}.json): OpenAPI 3.1 document. ${summary}`,
    `- [${title} as YAML](${file}.yaml): the same document in YAML.`,
  ])
  return `# execution-service

> ${guides[0]?.summary ?? ''}

## Guides

${guides.map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}`).join('\n')}

## Contracts

${documents.join('\n')}

## Optional

- [All guides in one file](llms-full.txt): the guides and the pages of the example workflows, one after another.
`
}

// Renders the API reference with `redocly build-docs`, which turns a document into one HTML page that works offline.

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

/** Redocly's decorators, by which a page has the operations of one tag and the components that they need. */
const configuration = (tag: string) => ({
  decorators: { 'filter-in': { property: 'tags', value: [tag] }, 'remove-unused-components': 'on' },
})

async function renderReferences(layout: Layout, contract: Contract): Promise<SplitPage[]> {
  const pages: SplitPage[] = []
  for (const tag of contract.tags) {
    const html = await renderReference(contract, tag, await referenceTemplate(layout, contract, tag))
    pages.push(splitPage(`${tag.page}.html`, html))
  }
  return pages
}

/**
 * Returns the page's HTML.
 *
 * @param template the page around the reference, as a Handlebars template with `redocHead` and `redocHTML`.
 */
async function renderReference(contract: Contract, tag: ContractTag, template: string): Promise<string> {
  const { path: directory, remove } = createTemporaryDirectory('docs')
  const file = (name: string) => join(directory, name)
  try {
    await writeFile(file('document.json'), JSON.stringify(documentForReaders(contract, tag)))
    await writeFile(file('redocly.yaml'), stringify(configuration(tag.name)))
    await writeFile(file('page.hbs'), template)
    const args = ['build-docs', 'document.json', '--inlineBundle', '-t', 'page.hbs', '-o', 'page.html', ...redocOptions]
    const environment = { PATH: process.env.PATH, TMPDIR: tmpdir(), ...offline }
    await promisify(execFile)(process.execPath, [redocly, ...args], { cwd: directory, env: environment })
    return await readFile(file('page.html'), 'utf8')
  } finally {
    remove()
  }
}

const moduleTag = '<script type="module">'

interface SplitPage {
  name: string
  head: string
  /** Redoc as a module, the same for all pages. */
  redoc: string
  /** Begins with the document, and passes it to Redoc's `hydrate`. */
  rest: string
}

/** Redocly writes Redoc's 2.3 MB into each page, as a module that goes on with the page's document. */
function splitPage(name: string, html: string): SplitPage {
  const start = html.indexOf(moduleTag)
  const end = html.indexOf('const __redoc_definition', start)
  if (start < 0 || end < 0) throw new Error(`${name} does not contain Redoc as pages of earlier versions do.`)
  return { name, head: html.slice(0, start), redoc: html.slice(start + moduleTag.length, end), rest: html.slice(end) }
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
