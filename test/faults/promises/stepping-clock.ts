/** Preloaded into the service's process: shifts its clock by the milliseconds in the file CLOCK_STEP. */
import { readFileSync } from 'node:fs'

const file = process.env.CLOCK_STEP ?? ''
const { now } = Date
const stepped = () => now() + Number(readFileSync(file, 'utf8'))

globalThis.Date = class extends Date {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(stepped())
    else super(...args)
  }

  static override now = stepped
} as DateConstructor
