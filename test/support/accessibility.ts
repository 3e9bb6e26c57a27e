/** What keeps people from using a page, as far as axe-core sees it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'

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

interface AxeGlobal {
  axe: { run(context: Document, options: RunOptions): Promise<AxeResults> }
}
