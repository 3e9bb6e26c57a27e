/**
 * Builds the docs as a set of files in memory. All files are in one folder and link to each other relatively, so the
 * same files work on a server and from a disk.
 */

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { type Addresses, type Contract, readContracts } from './contracts.ts'
import { type Guide, readGuides, readOverviews } from './guides.ts'
import { guidePage, notFoundPage, referenceTemplate, workflowPageTemplate } from './page-layout.ts'
import { readReference, referencePage } from './reference.ts'
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

/** The JSON Schema of scenarios, for editors. */
const scenariosFile = 'scenarios.schema.json'

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
  add(scenariosFile, readFileSync(new URL(`../../../generated/${scenariosFile}`, import.meta.url)))
  add('llms.txt', llmsText(guides, contracts))
  add('llms-full.txt', guides.map(({ markdown }) => markdown.trim()).join('\n\n'))
  add('404.html', await notFoundPage(layout))
  const references = contracts.flatMap(({ tags }) => tags.map(({ page }) => page))
  return { site, references, workflowPageTemplate: await workflowPageTemplate(layout) }
}

/** The pages of the reference, and their script. */
export async function buildReferences(addresses: Addresses = {}): Promise<Site> {
  const layout = createLayout(new Map(), addresses)
  const { redoc, pages } = await readReference(layout.contracts)
  const site: Site = new Map()
  const script = addImmutable(site, 'redoc.js', redoc)
  for (const contract of layout.contracts) {
    for (const tag of contract.tags) {
      const html = referencePage(await referenceTemplate(layout, contract, tag), script, pages[tag.page])
      const name = `${tag.page}.html`
      site.set(name, { ...siteFile(name, html), scriptHashes: inlineScriptHashes(html) })
    }
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
    script: addImmutable(site, 'docs.js', Buffer.concat([own('search-query.js'), own('docs.js')])),
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
