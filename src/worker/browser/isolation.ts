/** Checks that one browser context cannot see another's data. Run by `doctor` and the tests. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'
import { type OpenBrowser, openBrowser } from './connection.ts'

/** Served by a Playwright route, never over the network. HTTPS, because caches need a secure context. */
const address = 'https://isolation.test/'

/** The kinds of storage of a page: JavaScript that writes the canary, and that reads everything. */
const storages: Record<string, { write: string; read: string }> = {
  'a cookie': { write: 'document.cookie = `${canary}=${canary}; max-age=3600`', read: 'document.cookie' },
  'local storage': { write: 'localStorage.setItem(canary, canary)', read: 'JSON.stringify(localStorage)' },
  'session storage': { write: 'sessionStorage.setItem(canary, canary)', read: 'JSON.stringify(sessionStorage)' },
  'an IndexedDB database': {
    write: `new Promise((resolve, reject) => {
      const opening = indexedDB.open(canary)
      opening.onupgradeneeded = () => opening.result.createObjectStore(canary).put(canary, canary)
      opening.onerror = () => reject(opening.error)
      opening.onsuccess = () => resolve(opening.result.close())
    })`,
    read: 'indexedDB.databases().then((databases) => JSON.stringify(databases))',
  },
  'a cache': {
    write: 'caches.open(canary).then((cache) => cache.put(address, new Response(canary)))',
    read: 'caches.keys().then((names) => JSON.stringify(names))',
  },
}

interface Visitor {
  canary: string
  opened: OpenBrowser
  page: Page
}

/**
 * Writes a canary in each of three contexts and searches for it from the others, and from one opened later.
 *
 * @param open opens a context; tests replace it to show that leaks are found.
 * @returns a description of each leak.
 */
export async function checkIsolation(endpoint: BrowserEndpoint, open = openBrowser): Promise<string[]> {
  const visitors = await Promise.all([1, 2, 3].map(() => visit(endpoint, open)))
  const leaks: string[] = []
  try {
    await Promise.all(visitors.map(writeCanary))
    for (const visitor of visitors) {
      if (!(await readAll(visitor)).every(({ text }) => text.includes(visitor.canary))) {
        throw new Error('A context does not see its own canary: the check is inconclusive.')
      }
    }
    const later = await visit(endpoint, open)
    visitors.push(later)
    for (const visitor of visitors) leaks.push(...(await leaksInto(visitor, visitors)))
  } finally {
    await Promise.all(visitors.map(({ opened }) => opened.close()))
  }
  return [...new Set(leaks)]
}

async function visit(endpoint: BrowserEndpoint, open: typeof openBrowser): Promise<Visitor> {
  const opened = await open(endpoint, undefined)
  const page = await opened.context.newPage()
  await page.route(`${address}**`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
  await page.goto(address)
  return { canary: randomUUID(), opened, page }
}

async function writeCanary({ canary, page }: Visitor): Promise<void> {
  for (const { write } of Object.values(storages)) {
    await page.evaluate(`(async (address, canary) => { await (${write}) })("${address}", "${canary}")`)
  }
}

async function readAll({ page, opened }: Visitor): Promise<{ storage: string; text: string }[]> {
  const inPage = Object.entries(storages).map(async ([storage, { read }]) => {
    return { storage, text: String(await page.evaluate(`(async () => ${read})()`)) }
  })
  return [...(await Promise.all(inPage)), { storage: 'the storage state', text: await opened.storageState() }]
}

async function leaksInto({ canary, opened, page }: Visitor, visitors: readonly Visitor[]): Promise<string[]> {
  const others = visitors.filter((each) => each.canary !== canary)
  const found = await readAll({ canary, opened, page })
  const seen = found
    .filter(({ text }) => others.some((other) => text.includes(other.canary)))
    .map(({ storage }) => storage)
  if (opened.context.pages().length > 1) seen.push('a page')
  const contexts = opened.context.browser()?.contexts() ?? []
  if (contexts.some((each) => each !== opened.context)) seen.push('a context itself')
  return seen.map((what) => `${what} of one context is visible in another`)
}
