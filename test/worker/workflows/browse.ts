/** Visits a site: returns what earlier visits have stored, stores a value, and ends in one of many ways. */
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type BrowserRunContext, defineWorkflow } from 'execution-service/workflow'
import type { BrowserContext, Page } from 'playwright-core'

interface Variables {
  url: string
  /** The value to store; the site also sets it as a cookie. */
  value?: string
  how: string
  started?: string
  until?: string
}

/** Code for the page that reads and writes all kinds of storage. */
const scripts = {
  database: `new Promise((resolve, reject) => {
    const opening = indexedDB.open('visits', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('values')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => resolve(opening.result)
  })`,
  seen: `(async (open) => {
    const database = await open()
    const all = await new Promise((resolve) => {
      const reading = database.transaction('values').objectStore('values').getAll()
      reading.onsuccess = () => resolve(reading.result)
    })
    database.close()
    return {
      cookies: document.body.innerText,
      local: Object.values(localStorage).join(),
      database: all.join(),
      session: Object.values(sessionStorage).join(),
    }
  })`,
  leave: `(async (open, value) => {
    localStorage.setItem('left', value)
    sessionStorage.setItem('left', value)
    const database = await open()
    const writing = database.transaction('values', 'readwrite')
    writing.objectStore('values').put(value, 'left')
    await new Promise((resolve) => { writing.oncomplete = resolve })
    database.close()
  })`,
}

async function seenBy(page: Page, url: string): Promise<Record<string, string>> {
  // The page shows the cookies of this request.
  await page.goto(url)
  return page.evaluate(`${scripts.seen}(() => ${scripts.database})`)
}

/** Stores the value, and returns what was stored before. */
async function visit(context: BrowserContext, { url, value }: Variables) {
  const page = await context.newPage()
  const before = await seenBy(page, url)
  if (value !== undefined) {
    await page.goto(`${url}?cookie=${encodeURIComponent(value)}`)
    await page.evaluate(`${scripts.leave}(() => ${scripts.database}, ${JSON.stringify(value)})`)
  }
  return { page, before }
}

async function wait({ started, until }: Variables, signal: AbortSignal): Promise<void> {
  if (started) appendFileSync(started, `1 ${process.pid}\n`)
  while (until && !existsSync(until)) await delay(10, undefined, { signal })
}

async function browse({ variables, browser, log, progress, signal }: BrowserRunContext<Variables>) {
  const { how, url } = variables
  if (how === 'idle') return { pid: process.pid }
  if (how === 'carelessly') {
    browser().catch(() => {})
    return { pid: process.pid }
  }
  const context = await browser()
  const { page, before } = await visit(context, variables)
  if (how === 'exiting' || how === 'holding')
    await page.evaluate(`fetch(${JSON.stringify(`${url}hold`)}).catch(() => {}), undefined`)
  await wait(variables, signal)
  if (how === 'exiting') process.exit(3)
  if (how === 'hoarding') await page.evaluate("localStorage.setItem('large', 'ü'.repeat(3 * 1024 * 1024))")
  if (how === 'closing') await context.close()
  if (how === 'closing the browser') await context.browser()?.close()
  if (how === 'telling') {
    const message = `The site says ${(await context.cookies()).map(({ value }) => value).join()}.`
    log(message)
    progress(10, message)
    process.stdout.write(`${message}\n`)
    throw new Error(message)
  }
  if (how === 'failing') throw new Error('The page is not as it was.')
  const after = how.startsWith('closing') || how === 'hoarding' ? undefined : await seenBy(page, url)
  return { pid: process.pid, before, after }
}

export const definition = {
  id: 'browse',
  version: '1.0.0',
  title: 'Browse',
  browser: true,
  variables: {
    type: 'object',
    required: ['url', 'how'],
    properties: { url: { type: 'string' }, value: { type: 'string' }, how: { type: 'string' } },
  },
  output: {},
  run: (context: BrowserRunContext<object>) => browse(context as BrowserRunContext<Variables>),
} as const

export default defineWorkflow(definition)
