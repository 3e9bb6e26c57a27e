/** `npm run bench`: measures, and prints figures that compare within one run; absolute ones do not travel. */
import { print } from './figures.ts'
import { queueing } from './queueing.ts'
import { starting } from './starting.ts'

print(`Node ${process.version}. About five minutes; the figures are medians.\n`)
await starting()
await queueing()
