/** Every link of the docs. */
import { expect, test } from 'vitest'
import { readContracts } from '../../src/surfaces/docs/contracts.ts'
import { addresses, elementIds, pageNames, site, siteText } from './site.ts'

const tags = readContracts().flatMap((contract) => contract.tags)

/** Redoc creates the anchors of a reference in the browser; docs-in-browser.slow.test.ts compares them with these. */
async function anchorsIn(name: string): Promise<string[]> {
  const tag = tags.find(({ page }) => name === `${page}.html`)
  return tag ? tag.operations.map(({ href }) => href.split('#')[1] ?? '') : elementIds(await siteText(name))
}

async function brokenLinks(name: string): Promise<string[]> {
  const files = await site()
  const broken: string[] = []
  for (const address of addresses(await siteText(name))) {
    if (/^https:\/\//.test(address)) continue
    const [file = '', anchor] = address.split('#')
    const target = file === '' ? name : file
    const hasAnchor = anchor === undefined || anchor === 'main' || (await anchorsIn(target)).includes(anchor)
    if (!files.has(target) || !hasAnchor) broken.push(`${name} → ${address}`)
  }
  return broken
}

test('every link of every page leads to an existing file, section or operation', async () => {
  const pages = (await pageNames()).filter((name) => !tags.some(({ page }) => name === `${page}.html`))
  const broken = await Promise.all(pages.map(brokenLinks))
  expect(broken.flat()).toEqual([])
})
