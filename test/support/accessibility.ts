/** What keeps people from using a page, as far as axe-core sees it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import type { ShownPage } from './dashboard-pages.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const options: RunOptions = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  resultTypes: ['violations'],
}

/**
 * A line for each element that breaks a rule: the rule, where the element is, what it is, and what is wrong.
 *
 * @param rules those to look at, by axe's names; all of the levels and practices above unless given.
 */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (await page.evaluate(() => matchMedia('(scripting: none)').matches)) {
    throw new Error('axe-core waits with timers, which a page without JavaScript does not have.')
  }
  // Evaluated by the debugger, which no Content-Security-Policy concerns; once, since it takes as long as a look.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  const found: AxeResults['violations'] = await page.evaluate(
    async (options) => (await (globalThis as unknown as AxeGlobal).axe.run(document, options)).violations,
    rules ? { ...options, runOnly: [...rules] } : options,
  )
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, html, failureSummary = '' }) =>
      [id, target.join(' '), html.slice(0, 200), help, failureSummary].join(' | ').replace(/\s+/g, ' '),
    ),
  )
}

/** Rules that depend on more than the document: on what is shown, where, and in which colors. */
const ofLook = ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-name', 'button-name', 'label']

/** The second look is at all that may differ from the first. */
const looks: { look: string; colorScheme: 'light' | 'dark'; width: number; rules?: string[] }[] = [
  { look: 'light and wide', colorScheme: 'light', width: 1280 },
  // WCAG 2.2, 1.4.10: what 1280 pixels at 400 % leave; a phone has more.
  { look: 'dark, at the least width', colorScheme: 'dark', width: 320, rules: ofLook },
]

/** Runs in the page. What a page does about other colors begins with the next frame, and may be a transition. */
async function untilColorsStand(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    const animations = document.getAnimations()
    if (animations.length === 0) return
    // One whose element goes away is cancelled, which is an end, too.
    await Promise.allSettled(animations.map((animation) => animation.finished))
  }
}

/** What is wrong with the page, in any look. */
async function faults(page: Page, { name, open }: ShownPage): Promise<string[]> {
  const found: string[] = []
  for (const [index, { look, colorScheme, width, rules }] of looks.entries()) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: 800 })
    // In the first look: a page that is opened in the colors of the one before would still be changing them.
    if (index === 0) await open(page)
    // A click does not wait for the whole page that it leads to.
    await page.waitForLoadState()
    await page.evaluate(untilColorsStand)
    found.push(...(await violations(page, rules)).map((line) => `${name}, ${look}: ${line}`))
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wide > 0) found.push(`${name}, ${look}: is ${wide} px wider than the window`)
  }
  return found
}

/** What is wrong with the pages: a line for each fault, with the page and the look that show it. */
export async function findAccessibilityViolations(page: Page, pages: ShownPage[]): Promise<string[]> {
  const found: string[] = []
  for (const shown of pages) found.push(...(await faults(page, shown)))
  return found
}

interface AxeGlobal {
  axe: { run(context: Document, options: RunOptions): Promise<AxeResults> }
}
