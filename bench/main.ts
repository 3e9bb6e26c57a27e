/** `npm run bench`: measures, and prints figures that compare within one run; absolute ones do not travel. */
import { parseArgs } from 'node:util'
import { browser } from './browser.ts'
import { type Choice, choiceOf, options } from './choice.ts'
import { print } from './figures.ts'
import { queueing } from './queueing.ts'
import { reloading } from './reloading.ts'
import { scaling } from './scaling.ts'
import { starting } from './starting.ts'
import { statements } from './statements.ts'

type Part = (choice: Choice) => Promise<void>

const shortParts: Record<string, Part> = { starting, queueing, browser, reloading }
/** They take half an hour and gigabytes of disk, so that they run when they are named alone. */
const longParts: Record<string, Part> = { scaling, statements }
const parts = { ...shortParts, ...longParts }

const asked = askedFor()
if (asked) {
  print(`Node ${process.version}. The figures are medians.\n`)
  for (const name of asked.names) await parts[name]?.(asked.choice)
}

function askedFor(): { names: string[]; choice: Choice } | undefined {
  try {
    const { positionals, values } = parseArgs({ options, allowPositionals: true })
    const unknown = positionals.find((name) => !Object.hasOwn(parts, name))
    if (unknown !== undefined) {
      const [all, short] = [parts, shortParts].map((some) => Object.keys(some).join(', '))
      throw new Error(`There is no part ${unknown}: name some of ${all}, or none for ${short}.`)
    }
    return { names: positionals.length > 0 ? positionals : Object.keys(shortParts), choice: choiceOf(values) }
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
    return undefined
  }
}
