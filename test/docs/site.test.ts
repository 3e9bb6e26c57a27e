/** What the docs consist of, and that none of their links leads nowhere. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Contract, readContracts } from '../../src/surfaces/docs/contracts.ts'
import { addressesIn, idsIn, pages, site, textOf } from './site.ts'

const contracts = readContracts()
const guides = readdirSync('docs/guides').map((file) => file.replace(/\.md$/, ''))

/** Of a reference page: what Redoc makes of its document, which a test in a browser compares with Redoc. */
function anchorsOf({ operations }: Contract): string[] {
  return operations.map(({ anchor }) => anchor)
}

async function anchorsIn(name: string): Promise<string[]> {
  const contract = contracts.find(({ page }) => name === `${page}.html`)
  return contract ? anchorsOf(contract) : idsIn(await textOf(name))
}

/** Relative addresses of files in the site's one folder are the same under /docs/ and as files. */
async function brokenLinks(name: string): Promise<string[]> {
  const files = await site()
  const broken: string[] = []
  for (const address of addressesIn(await textOf(name))) {
    if (/^https:\/\//.test(address)) continue
    const [file = '', anchor] = address.split('#')
    const target = file === '' ? name : file
    const isThere =
      files.has(target) && (anchor === undefined || anchor === 'main' || (await anchorsIn(target)).includes(anchor))
    if (!isThere) broken.push(`${name} → ${address}`)
  }
  return broken
}

test('every link of every page leads to a page, a section or an operation, also when the pages are files', async () => {
  const broken = await Promise.all((await pages()).map(brokenLinks))
  expect(broken.flat()).toEqual([])
})

test('every link of the page for addresses that lead nowhere works from any of them', async () => {
  const files = await site()
  for (const address of addressesIn(await textOf('404.html'))) {
    if (address === '#main') continue
    expect(address).toMatch(/^\/docs\//)
    expect(files.has(address.slice('/docs/'.length))).toBe(true)
  }
})

test('every link of llms.txt and of a guide in Markdown leads to a file', async () => {
  const files = await site()
  const links: string[] = []
  for (const name of ['llms.txt', ...guides.map((guide) => `${guide}.md`)]) {
    for (const [, address = ''] of (await textOf(name)).matchAll(/\]\(([^)#]+)[^)]*\)/g)) links.push(address)
  }
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter((address) => !address.startsWith('https://') && !files.has(address))).toEqual([])
})

test('no page, script or style names another host to load something from', async () => {
  for (const [name, { content, mediaType }] of await site()) {
    if (!/html|css|javascript/.test(mediaType)) continue
    const text = Buffer.from(content).toString()
    expect([name, text.match(/(?:cdn|otel)\.[\w.]*redoc[\w.]*/)?.[0]]).toEqual([name, undefined])
    if (name.endsWith('.css')) expect([name, text.match(/@import|url\(["']?https?:/)?.[0]]).toEqual([name, undefined])
    expect([name, text.match(/<(?:script|link|img|iframe)[^>]+(?:src|href)="https?:/)?.[0]]).toEqual([name, undefined])
  }
})

test('each document is served as it was generated, byte for byte, and in YAML with the same content', async () => {
  for (const { file, document } of contracts) {
    const json = (await site()).get(`${file}.json`)?.content ?? new Uint8Array()
    expect(readFileSync(`generated/${file}/document.json`).equals(json)).toBe(true)
    expect(parse(await textOf(`${file}.yaml`))).toEqual(document)
  }
})

test('every guide is a page, is in the list at the side of all of them, in llms.txt and in Markdown', async () => {
  const [llms, index] = [await textOf('llms.txt'), await textOf('index.html')]
  for (const guide of guides) {
    expect(await textOf(`${guide}.html`)).toContain('<h1 ')
    for (const { title, version } of contracts) expect(await textOf(`${guide}.html`)).toContain(`${title} ${version}`)
    expect(index).toContain(`href="${guide}.html"`)
    expect(llms).toContain(`](${guide}.md)`)
    expect(await textOf(`${guide}.md`)).toMatch(/^# /)
  }
  expect(llms).toMatch(/^# .+\n\n> .+\n\n## /)
})

test('no page has an id twice, and every page says where one is', async () => {
  for (const name of await pages()) {
    const page = await textOf(name)
    const ids = idsIn(page)
    expect([name, ids.filter((id, index) => ids.indexOf(id) !== index)]).toEqual([name, []])
    expect(page).toContain('aria-current="')
  }
})

test('the same sources make the same site', async () => {
  const { docsSite } = await import('../../src/surfaces/docs/site.ts')
  const digests = (files: Awaited<ReturnType<typeof site>>) => [...files].map(([name, { digest }]) => [name, digest])
  expect(digests(await docsSite())).toEqual(digests(await site()))
})

test('a service that nobody asks for its docs loads nothing of what builds them', () => {
  const imports = readFileSync('src/surfaces/docs/docs-handler.ts', 'utf8').match(/^import (?!type ).*$/gm) ?? []
  expect(imports.length).toBeGreaterThan(0)
  for (const line of imports) expect(line).toMatch(/ from 'node:/)
})
