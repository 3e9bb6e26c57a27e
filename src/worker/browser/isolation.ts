/** The check that nothing of one context is seen from another, which `doctor` and the tests run. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'
import { type OpenBrowser, openBrowser } from './connection.ts'

/** Never asked of any server: the page's route answers it. A secure one, as service workers and the like need. */
const address = 'https://isolation.test/'

/** Where a page keeps values: what is run in it to write its canary, and to read all that is there. */
const places: Record<string, { write: string; read: string }> = {
  'a cookie': {
    write: 'document.cookie = `${canary}=${canary}; max-age=3600`',
    read: 'document.cookie',
  },
  'local storage': {
    write: 'localStorage.setItem(canary, canary)',
    read: 'JSON.stringify(localStorage)',
  },
  'session storage': {
    write: 'sessionStorage.setItem(canary, canary)',
    read: 'JSON.stringify(sessionStorage)',
  },
  'a database of IndexedDB': {
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
 * Plants canaries in one context and looks for them from others, side by side, and from one that comes after them.
 *
 * @param open opens the contexts; given to show that the check sees what leaks.
 * @returns what leaked, in words; empty when nothing did.
 */
export async function checkIsolation(endpoint: BrowserEndpoint, open = openBrowser): Promise<string[]> {
  const visitors = await Promise.all([1, 2, 3].map(() => visit(endpoint, open)))
  const leaks: string[] = []
  try {
    await Promise.all(visitors.map(plant))
    for (const visitor of visitors) {
      if (!(await readAll(visitor)).every(({ text }) => text.includes(visitor.canary))) {
        throw new Error('The check found no trace of what it planted itself: it says nothing of isolation.')
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

async function plant({ canary, page }: Visitor): Promise<void> {
  for (const { write } of Object.values(places)) {
    await page.evaluate(`(async (address, canary) => { await (${write}) })("${address}", "${canary}")`)
  }
}

async function readAll({ page, opened }: Visitor): Promise<{ place: string; text: string }[]> {
  const inPage = Object.entries(places).map(async ([place, { read }]) => {
    return { place, text: String(await page.evaluate(`(async () => ${read})()`)) }
  })
  return [...(await Promise.all(inPage)), { place: 'the storage state', text: await opened.storageState() }]
}

async function leaksInto({ canary, opened, page }: Visitor, visitors: readonly Visitor[]): Promise<string[]> {
  const others = visitors.filter((each) => each.canary !== canary)
  const found = await readAll({ canary, opened, page })
  const seen = found.filter(({ text }) => others.some((other) => text.includes(other.canary))).map(({ place }) => place)
  if (opened.context.pages().length > 1) seen.push('a page')
  if (
    opened.context
      .browser()
      ?.contexts()
      .some((each) => each !== opened.context)
  )
    seen.push('a context itself')
  return seen.map((what) => `${what} of one context is seen from another`)
}
