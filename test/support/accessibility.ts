/** Checks pages for accessibility with axe-core. */
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
 * Returns one line for each element that violates a rule: the rule, the selector, the element, and the explanation.
 *
 * @param rules ids of axe's rules; defaults to all rules of the levels above.
 */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (await page.evaluate(() => matchMedia('(scripting: none)').matches)) {
    throw new Error('axe-core needs timers, so the page must run JavaScript.')
  }
  // Injected through the debugger, which bypasses the Content-Security-Policy; once, since it takes as long as a check.
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

/** Rules that depend on the layout and the colors, not only on the document. */
const visualRules = [
  'color-contrast',
  'target-size',
  'scrollable-region-focusable',
  'link-name',
  'button-name',
  'label',
]

/** Ways to show a page. The second one checks only what may differ from the first. */
const appearances: { appearance: string; colorScheme: 'light' | 'dark'; width: number; rules?: string[] }[] = [
  { appearance: 'light and wide', colorScheme: 'light', width: 1280 },
  // WCAG 2.2, 1.4.10: 1280 pixels at 400 % zoom, narrower than any phone.
  { appearance: 'dark, minimum width', colorScheme: 'dark', width: 320, rules: visualRules },
]

/** Runs in the page. A change of the color scheme takes effect with the next frame, and may start transitions. */
async function waitForTransitions(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    const animations = document.getAnimations()
    if (animations.length === 0) return
    // Animations of removed elements are cancelled, which rejects.
    await Promise.allSettled(animations.map((animation) => animation.finished))
  }
}

/** Returns the violations of a page in every appearance. */
async function findViolations(page: Page, { name, open }: ShownPage): Promise<string[]> {
  const violationLines: string[] = []
  for (const [index, { appearance, colorScheme, width, rules }] of appearances.entries()) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: 800 })
    // After the color scheme is set: a page opened in another one would still be changing its colors.
    if (index === 0) await open(page)
    // `open` may end with a click, which does not wait for the next page to load.
    await page.waitForLoadState()
    await page.evaluate(waitForTransitions)
    violationLines.push(...(await violations(page, rules)).map((line) => `${name}, ${appearance}: ${line}`))
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (overflow > 0) violationLines.push(`${name}, ${appearance}: ${overflow} px wider than the window`)
  }
  return violationLines
}

/** Returns one line for each violation, with the page and its appearance. */
export async function findAccessibilityViolations(page: Page, pages: ShownPage[]): Promise<string[]> {
  const violationLines: string[] = []
  for (const shownPage of pages) violationLines.push(...(await findViolations(page, shownPage)))
  return violationLines
}

interface AxeGlobal {
  axe: { run(context: Document, options: RunOptions): Promise<AxeResults> }
}
