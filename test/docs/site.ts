/** The docs, built once for all tests of a file, and readers of their pages. */
import MiniSearch, { type SearchResult } from 'minisearch'
import '../../src/surfaces/docs/assets/search-query.js'
import { buildDocs, buildReferences, type Docs, type Site } from '../../src/surfaces/docs/site.ts'

const pages = globalThis as unknown as {
  searchDocs(indexes: MiniSearch[], text: string): SearchResult[]
}

let docs: Promise<Docs> | undefined
let reference: Promise<Site> | undefined

function readDocs(): Promise<Docs> {
  docs ??= buildDocs()
  return docs
}

/** All files. */
export async function site(): Promise<Site> {
  reference ??= buildReferences()
  return new Map([...(await readDocs()).site, ...(await reference)])
}

/** Builds the reference only for a page of it: that takes seconds. */
export async function siteText(name: string): Promise<string> {
  const { site: files } = await readDocs()
  return fileText(files.has(name) ? files : await site(), name)
}

export function fileText(files: Site, name: string): string {
  const file = files.get(name)
  if (!file) throw new Error(`The docs have no ${name}.`)
  return Buffer.from(file.content).toString()
}

/** Names of all pages except the error page. */
export async function pageNames(): Promise<string[]> {
  return [...(await site()).keys()].filter((name) => name.endsWith('.html') && name !== '404.html')
}

/** The HTML of a page without the code of its scripts. */
function markup(page: string): string {
  return page.replaceAll(/(<script[^>]*>).*?<\/script>/gs, '$1</script>')
}

export function elementIds(page: string): string[] {
  return [...markup(page).matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
}

/** Every address in links, styles, scripts, images, and in the attributes that the script reads. */
export function addresses(page: string): string[] {
  const attributes = markup(page).matchAll(/ (?:href|src|data-minisearch|data-index)="([^"]*)"/g)
  return [...attributes].map(([, address = '']) => address.replaceAll('&amp;', '&'))
}

/** What a page finds with the script of an index. */
export function searchDocs(script: string, text: string): SearchResult[] {
  const { index, options } = JSON.parse(script.slice(script.indexOf('{')))
  return pages.searchDocs([MiniSearch.loadJSON(index, options)], text)
}
