/** `npm run bench`: measures, and prints figures that compare within one run; absolute ones do not travel. */
import { browser } from './browser.ts'
import { print } from './figures.ts'
import { queueing } from './queueing.ts'
import { reloading } from './reloading.ts'
import { starting } from './starting.ts'

const parts: Record<string, () => Promise<void>> = { starting, queueing, browser, reloading }

const chosen = process.argv.slice(2)
const unknown = chosen.find((name) => !Object.hasOwn(parts, name))
if (unknown === undefined) {
  print(`Node ${process.version}. About ten minutes for all; the figures are medians.\n`)
  for (const [name, measure] of Object.entries(parts)) {
    if (chosen.length === 0 || chosen.includes(name)) await measure()
  }
} else {
  process.stderr.write(`There is no part ${unknown}: name some of ${Object.keys(parts).join(', ')}, or none for all.\n`)
  process.exitCode = 1
}
