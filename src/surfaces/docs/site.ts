/** Builds the docs: all files of the site in memory, with links that work on a server and from files alike. */
import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { type Addresses, type Contract, readContracts } from './contracts.ts'
import { addLasting, type Site, siteFile } from './files.ts'
import { readGuides } from './guides.ts'
import { llmsText } from './llms.ts'
import { type Assets, guidePage, notFoundPage, referencePage } from './page-layout.ts'
import { documentScript, redocScript } from './reference.ts'
import { searchScript } from './search-index.ts'

/** @param addresses of the APIs, for guides and samples; without them, those that the documents name. */
export async function docsSite(addresses?: Addresses): Promise<Site> {
  const contracts = readContracts(addresses)
  const guides = readGuides(contracts)
  const site: Site = new Map()
  const assets = addAssets(site, searchScript(guides, contracts))
  const around = { assets, guides, contracts }
  const add = (name: string, content: string | Buffer) => site.set(name, siteFile(name, content))
  for (const guide of guides) {
    add(`${guide.name}.html`, await guidePage(around, guide))
    add(`${guide.name}.md`, guide.markdown)
  }
  for (const contract of contracts) {
    const script = addLasting(site, `${contract.page}.js`, documentScript(contract))
    add(`${contract.page}.html`, await referencePage(around, contract, script))
    add(`${contract.file}.json`, contract.json)
    add(`${contract.file}.yaml`, yamlOf(contract))
  }
  add('llms.txt', llmsText(guides, contracts))
  add('404.html', await notFoundPage(around))
  return site
}

/** In the order in which they build on each other. */
const guideStyles = ['guide.css', 'text.css', 'code.css', 'diagram.css']

function addAssets(site: Site, index: string): Assets {
  const own = (name: string) => readFileSync(new URL(`./assets/${name}`, import.meta.url))
  const ofDashboard = (name: string) => readFileSync(new URL(`../dashboard/assets/${name}`, import.meta.url))
  const ofPackage = (specifier: string, path = '') => readFileSync(new URL(path, import.meta.resolve(specifier)))
  const look = Buffer.concat([ofDashboard('base.css'), own('bar.css'), own('search.css')])
  return {
    pico: addLasting(site, 'pico.css', ofPackage('@picocss/pico/css/pico.indigo.min.css')),
    docs: addLasting(site, 'docs.css', Buffer.concat([look, ...guideStyles.map(own)])),
    reference: addLasting(site, 'reference.css', Buffer.concat([look, own('reference.css')])),
    referenceScript: addLasting(site, 'reference.js', own('reference.js')),
    theme: addLasting(site, 'theme.js', own('theme.js')),
    script: addLasting(site, 'docs.js', own('docs.js')),
    redoc: addLasting(site, 'redoc.js', redocScript()),
    searcher: addLasting(site, 'minisearch.js', ofPackage('minisearch', '../umd/index.js')),
    index: addLasting(site, 'search-index.js', index),
    icon: addLasting(site, 'icon.svg', ofDashboard('icon.svg')),
  }
}

function yamlOf({ document }: Contract): string {
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 120 })
}
