/** The docs as the tests read them: built once, with what can be told of a page without drawing it. */
import type { Site } from '../../src/surfaces/docs/files.ts'
import { docsSite } from '../../src/surfaces/docs/site.ts'

let built: Promise<Site> | undefined

export function site(): Promise<Site> {
  built ??= docsSite()
  return built
}

export async function textOf(name: string): Promise<string> {
  return textIn(await site(), name)
}

export function textIn(files: Site, name: string): string {
  const file = files.get(name)
  if (!file) throw new Error(`The docs have no ${name}.`)
  return Buffer.from(file.content).toString()
}

/** The names of all pages but that of an error, which leads to the others from anywhere. */
export async function pages(): Promise<string[]> {
  return [...(await site()).keys()].filter((name) => name.endsWith('.html') && name !== '404.html')
}

export function idsIn(page: string): string[] {
  return [...page.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
}

/** Every address that the page names: of links, styles, scripts, images and what its script loads. */
export function addressesIn(page: string): string[] {
  const attributes = page.matchAll(/ (?:href|src|data-searcher|data-index)="([^"]*)"/g)
  return [...attributes].map(([, address = '']) => address.replaceAll('&amp;', '&'))
}
