/** What a benchmark must reach, beside what it has measured. */
import { median, table } from './figures.ts'

export interface Bar {
  name: string
  store: string
  /** One of each round, such as a ratio to a peer measured in the same round. */
  values: number[]
  atLeast?: number
  atMost?: number
}

/** A table of the bars, with the median and the range of each. */
export function formatBars(bars: readonly Bar[]): string {
  const rows = bars.map(({ name, store, values, atLeast, atMost }) => {
    const value = median(values)
    const isMet = value >= (atLeast ?? value) && value <= (atMost ?? value)
    const bound = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`
    return [name, store, formatRange(values), bound, isMet ? 'met' : 'missed']
  })
  return table([['aim', 'store', 'measured', 'bound', ''], ...rows])
}

/** The median, and the range over the rounds. */
export function formatRange(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return `${median([...values]).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
}
