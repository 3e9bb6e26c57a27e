/** The files of the docs, the links between them, and the pages of the reference. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readContracts, samplesFor } from '../../src/surfaces/docs/contracts.ts'
import { buildDocs } from '../../src/surfaces/docs/site.ts'
import { addresses, elementIds, pageNames, site, siteText } from './site.ts'

const contracts = readContracts()
const tags = contracts.flatMap((contract) => contract.tags)
const operatorDocs = ['configuration', 'operating', 'observability', 'backup-and-retention', 'reliability']
const guides = [...readdirSync('docs/guides').map((file) => file.replace(/\.md$/, '')), ...operatorDocs]

test('every link of the error page is absolute and leads to an existing file', async () => {
  const files = await site()
  for (const address of addresses(await siteText('404.html'))) {
    if (address === '#main') continue
    expect(address).toMatch(/^\/docs\//)
    expect(files.has(address.slice('/docs/'.length))).toBe(true)
  }
})

test('every link of llms.txt and of a guide in Markdown leads to an existing file', async () => {
  const files = await site()
  const links: string[] = []
  for (const name of ['llms.txt', ...guides.map((guide) => `${guide}.md`)]) {
    for (const [, address = ''] of (await siteText(name)).matchAll(/\]\(([^)#]+)[^)]*\)/g)) links.push(address)
  }
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter((address) => !address.startsWith('https://') && !files.has(address))).toEqual([])
})

test('a link to a file of the repository that the docs do not serve becomes text that names the file', async () => {
  const source = readFileSync('docs/operating.md', 'utf8')
  expect(source).toContain('[changelog](../CHANGELOG.md)')
  expect(await siteText('operating.md')).toContain('changelog (`CHANGELOG.md`)')
  expect(source).toContain('[`compose.yaml`](../compose.yaml)')
  expect(await siteText('operating.md')).toContain('\n`compose.yaml` runs PostgreSQL')
  expect(await siteText('operating.md')).toContain('[configuration](configuration.md#the-encryption-key)')
})

test('the reference has an overview of each document and a page for each tag, which share the script of Redoc', async () => {
  const files = await site()
  const scripts = [...files.keys()].filter((name) => /^redoc\..+\.js$/.test(name))
  expect(scripts).toHaveLength(1)
  for (const { page, operations, tags } of contracts) {
    const overview = await siteText(`${page}.html`)
    for (const { href } of operations) expect(overview).toContain(`href="${href}"`)
    expect(tags.flatMap((tag) => tag.operations)).toHaveLength(operations.length)
    for (const tag of tags) {
      const [text, index] = [await siteText(`${tag.page}.html`), await siteText('index.html')]
      for (const html of [overview, index]) expect(html).toContain(`href="${tag.page}.html"`)
      expect(text).toContain(`<script src="${scripts[0]}"></script>`)
      const shown = operations.filter(({ id }) => text.includes(`"operationId":"${id}"`))
      expect(shown).toEqual(tag.operations)
      expect(text.length).toBeLessThan(600_000)
    }
  }
})

test('without other addresses, each document is byte for byte as generated, and as YAML with the same content', async () => {
  for (const { file, document } of contracts) {
    const json = (await site()).get(`${file}.json`)?.content ?? new Uint8Array()
    expect(readFileSync(`generated/${file}/document.json`).equals(json)).toBe(true)
    expect(parse(await siteText(`${file}.yaml`))).toEqual(document)
  }
})

test('every guide is a page, is listed in the navigation and in llms.txt, and is available as Markdown', async () => {
  const [llms, index] = [await siteText('llms.txt'), await siteText('index.html')]
  for (const guide of guides) {
    expect(await siteText(`${guide}.html`)).toContain('<h1 ')
    for (const { title, version } of contracts) expect(await siteText(`${guide}.html`)).toContain(`${title} ${version}`)
    expect(index).toContain(`href="${guide}.html"`)
    expect(llms).toContain(`](${guide}.md)`)
    expect(await siteText(`${guide}.md`)).toMatch(/^# /)
  }
  expect(llms).toMatch(/^# .+\n\n> .+\n\n## /)
})

test('no page has a duplicate id, and every page marks itself in the navigation', async () => {
  for (const name of await pageNames()) {
    const page = await siteText(name)
    const ids = elementIds(page)
    expect([name, ids.filter((id, index) => ids.indexOf(id) !== index)]).toEqual([name, []])
    expect(page).toContain('aria-current="')
  }
})

test('the reference contains the samples of every operation', async () => {
  for (const { page, operations } of tags) {
    const reference = await siteText(`${page}.html`)
    for (const { id } of operations) {
      const samples = samplesFor(id)
      expect([id, samples.length]).toEqual([id, 3])
      // JSON in a script.
      const texts = samples.map(({ source }) => JSON.stringify(source).slice(1, -1))
      expect([id, texts.filter((text) => !reference.includes(text))]).toEqual([id, []])
    }
  }
})

test('the reference shows the members of each type of event, with an example of each', async () => {
  const reference = await siteText('execution-runs.html')
  const [, stream = ''] = /"text\/event-stream":(\{"schema":.+?"204")/s.exec(reference) ?? []
  for (const type of ['status', 'log', 'progress', 'step', 'artifact']) {
    const name = `Run${type.charAt(0).toUpperCase()}${type.slice(1)}Event`
    expect(stream).toContain(`{"$ref":"#/components/schemas/${name}"}`)
    expect(stream).toMatch(new RegExp(`"${type}":\\{"summary"`))
  }
})

test('reasons of decisions appear on the page of decisions only', async () => {
  for (const { page } of tags) {
    expect(await siteText(`${page}.html`)).not.toContain('Decided here')
  }
})

test('building twice gives the same files', async () => {
  const twice = await buildDocs()
  for (const [name, { digest }] of twice.site) expect([name, digest]).toEqual([name, (await site()).get(name)?.digest])
})

test('a service loads nothing that builds the docs until a page is requested', () => {
  const imports = readFileSync('src/surfaces/docs/docs-handler.ts', 'utf8').match(/^import (?!type ).*$/gm) ?? []
  expect(imports.length).toBeGreaterThan(0)
  for (const line of imports) expect(line).toMatch(/ from 'node:/)
})
