/** The check that nothing of one context is seen from another, which `doctor` and the tests run. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import type { BrowserEndpoint } from './browser-host.ts'
import { type OpenBrowser, openBrowser } from './connection.ts'

/** Never asked of any server: the page's route answers it. A secure one, as service workers and the like need. */
const address = 'https://isolation.test/'

/** How a page keeps a value: what is run in it to write one, and to read it. */
const places: Record<string, { write: string; read: string }> = {
  'a cookie': {
    write: 'document.cookie = `canary=${canary}; max-age=3600`',
    read: 'document.cookie',
  },
  'local storage': {
    write: 'localStorage.setItem("canary", canary)',
    read: 'JSON.stringify(localStorage)',
  },
  'session storage': {
    write: 'sessionStorage.setItem("canary", canary)',
    read: 'JSON.stringify(sessionStorage)',
  },
  IndexedDB: {
    write: `new Promise((resolve, reject) => {
      const opening = indexedDB.open("canary", 1)
      opening.onupgradeneeded = () => opening.result.createObjectStore("canary").put(canary, "canary")
      opening.onerror = () => reject(opening.error)
      opening.onsuccess = () => resolve(opening.result.close())
    })`,
    read: `indexedDB.databases().then((found) => found.length === 0 ? "" : new Promise((resolve, reject) => {
      const opening = indexedDB.open("canary")
      opening.onerror = () => reject(opening.error)
      opening.onsuccess = () => {
        const reading = opening.result.transaction("canary").objectStore("canary").getAll()
        reading.onerror = () => reject(reading.error)
        reading.onsuccess = () => resolve(JSON.stringify(reading.result)) ?? opening.result.close()
      }
    }))`,
  },
  'the cache of requests': {
    write: 'caches.open("canary").then((cache) => cache.put("/canary", new Response(canary)))',
    read: 'caches.match("/canary").then((found) => found ? found.text() : "")',
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
    await page.evaluate(`(async () => { const canary = ${JSON.stringify(canary)}; await (${write}) })()`)
  }
}

async function readAll({ page, opened }: Visitor): Promise<{ place: string; text: string }[]> {
  const inPage = Object.entries(places).map(async ([place, { read }]) => {
    return { place, text: String(await page.evaluate(`(async () => ${read})()`)) }
  })
  return [...(await Promise.all(inPage)), { place: 'the storage state', text: await opened.storageState() }]
}

async function leaksInto(visitor: Visitor, visitors: readonly Visitor[]): Promise<string[]> {
  const found = await readAll(visitor)
  const others = visitors.filter((each) => each !== visitor)
  const seen = found.filter(({ text }) => others.some(({ canary }) => text.includes(canary)))
  const pages = visitor.opened.context.pages().length
  return [
    ...seen.map(({ place }) => `${place} of one context is seen in another`),
    ...(pages > 1 ? ['pages of one context are seen in another'] : []),
  ]
}
