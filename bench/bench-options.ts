/** Command-line options that select what `scaling`, `statements`, `peers` and `waits` measure. */
import { type StoreKind, storeKinds } from './filled-store.ts'
import type { Shape } from './separate-processes.ts'

export interface BenchOptions {
  stores: StoreKind[]
  finished: number[]
  shapes: Shape[]
  rounds: number
  seconds: number
  /** Waiting runs. */
  waiting: number
}

export const options = {
  stores: { type: 'string', default: storeKinds.join(',') },
  finished: { type: 'string', default: '0,100000,2000000' },
  shapes: { type: 'string', default: '1x1,2x1,4x1,1x2,1x4' },
  rounds: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '1.5' },
  waiting: { type: 'string', default: '100000' },
} as const

export function parseOptions(values: Record<keyof typeof options, string>): BenchOptions {
  const stores = values.stores.split(',') as StoreKind[]
  const unknown = stores.find((kind) => !storeKinds.includes(kind))
  if (unknown) throw new Error(`--stores has "${unknown}": choose from ${storeKinds.join(', ')}.`)
  const shapes = values.shapes.split(',').map((shape) => {
    const [apis = 0, workers = 0] = shape.split('x').map(Number)
    if (apis > 0 && workers > 0) return { apis, workers }
    throw new Error(`--shapes has "${shape}": write API processes x workers, such as 2x1.`)
  })
  const finished = values.finished.split(',').map(Number)
  const [rounds = 0, seconds = 0, waiting = 0] = [values.rounds, values.seconds, values.waiting].map(Number)
  if (![rounds, seconds, waiting, ...finished].every((each) => each >= 0)) {
    throw new Error(
      '--rounds, --seconds, --waiting and --finished require numbers; --finished accepts several, separated by commas.',
    )
  }
  return { stores, shapes, rounds, seconds, waiting, finished }
}
