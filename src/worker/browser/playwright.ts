/** Loads Playwright where it is needed first: it takes a third of a second and much memory, and most runs do without. */
import type { BrowserType } from 'playwright-core'

export async function loadChromium(): Promise<BrowserType> {
  // Playwright would write what it sends, cookies among it, to where the log of a run or of the service is.
  const { DEBUG } = process.env
  delete process.env.DEBUG
  try {
    return (await import('playwright-core')).chromium
  } finally {
    if (DEBUG !== undefined) process.env.DEBUG = DEBUG
  }
}
