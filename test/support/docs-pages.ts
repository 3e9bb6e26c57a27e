/** The docs in a browser: from a folder, and from a service. */
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { readContracts } from '../../src/surfaces/docs/contracts.ts'
import { docsSite } from '../../src/surfaces/docs/site.ts'
import type { ShownPage } from './dashboard-pages.ts'
import { removeDirectory } from './service.ts'

const guideNames = readdirSync('docs/guides').map((file) => file.replace(/\.md$/, ''))

/** The address of each operation in the reference. */
export const operationPages = readContracts().flatMap(({ operations }) =>
  operations.map(({ id, href, summary }) => ({ id, summary, path: href })),
)

const referencePages = readContracts().flatMap(({ tags }) => tags.map(({ page }) => `${page}.html`))

export interface DocsFolder {
  /** Ends with a slash. */
  url: string
  remove(): void
}

/** Writes the docs to a temporary folder, as `npm run docs` does to `dist/docs`. */
export async function docsFolder(): Promise<DocsFolder> {
  const directory = mkdtempSync(join(tmpdir(), 'docs-'))
  for (const [name, { content }] of await docsSite()) writeFileSync(join(directory, name), content)
  return { url: `${pathToFileURL(directory)}/`, remove: () => removeDirectory(directory) }
}

/** Opens a page and waits until it is drawn. */
export async function openDocs(page: Page, url: string): Promise<void> {
  await page.goto(url)
  if (referencePages.some((name) => url.includes(`/${name}`))) {
    await page.locator('#redoc h1, #redoc h2').first().waitFor()
  }
}

/** Every guide and page of the reference, and one operation. */
export function docsPages(url: string): ShownPage[] {
  const [first] = operationPages
  const names = [
    ...guideNames.map((name) => `${name}.html`),
    'execution.html',
    'browser-context.html',
    ...referencePages,
    first?.path ?? '',
  ]
  return names.map((name) => ({ name, open: (page: Page) => openDocs(page, `${url}${name}`) }))
}
