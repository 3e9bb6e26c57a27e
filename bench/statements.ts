/** Finds the actions that a full store slows down, and prints the plans of their statements. */

import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { type FilledStore, FilledStores } from './filled-store.ts'
import { type Recorded, RecordedStore } from './recorded-store.ts'
import { type Actions, createActions } from './store-actions.ts'

const repetitions = 20
/** Smaller differences are irrelevant. */
const relevantMilliseconds = 5
const relevantFactor = 2
/** Plans may contain many ids. */
const lineLengthMax = 300

interface Subject {
  filled: FilledStore
  recorded: RecordedStore
  actions: Actions
  close(): Promise<void>
}

interface Measured {
  milliseconds: number[]
  statements: Recorded[]
}

export async function statements({ stores: kinds, finished }: BenchOptions): Promise<void> {
  const stores = new FilledStores()
  // The timers awaited here are unreferenced and do not keep the process alive.
  const keepAlive = setInterval(() => {}, 1000)
  try {
    for (const kind of kinds) {
      const subjects: Subject[] = []
      for (const count of finished) subjects.push(await open(await stores.get(kind, count)))
      print(await compare(subjects))
      for (const { close, filled } of subjects) {
        await close()
        await filled.restore()
      }
    }
  } finally {
    clearInterval(keepAlive)
    await stores.close()
  }
}

async function open(filled: FilledStore): Promise<Subject> {
  const store = await filled.open()
  const recorded = new RecordedStore(store, filled.kind)
  const actions = await createActions(recorded.store, filled.apiKeys[0] ?? '')
  return { filled, recorded, actions, close: () => store.close() }
}

async function compare(subjects: Subject[]): Promise<string> {
  const rows: (string | number)[][] = []
  const plans: string[] = []
  for (const action of Object.keys(subjects[0]?.actions ?? {})) {
    const measured = await measure(subjects, action)
    const [empty = Number.NaN, ...others] = measured.map(({ milliseconds }) => median(milliseconds))
    const full = others.at(-1) ?? empty
    rows.push([action, ...[empty, ...others].map((each) => `${each.toFixed(2)} ms`), (full / empty).toFixed(1)])
    const isSlower = full > empty * relevantFactor && full - empty > relevantMilliseconds
    const last = subjects.at(-1)
    if (isSlower && last) plans.push(await explain(action, last, measured.at(-1)?.statements ?? []))
  }
  const sizes = subjects.map(({ filled }) => `${filled.finished.toLocaleString('en')} runs`)
  return [table([[`${subjects[0]?.filled.kind}: median of`, ...sizes, 'largest ÷ smallest'], ...rows]), ...plans].join(
    '\n',
  )
}

/** Alternates the stores. */
async function measure(subjects: Subject[], action: string): Promise<Measured[]> {
  const milliseconds = subjects.map((): number[] => [])
  for (const { recorded } of subjects) recorded.take()
  for (let count = 0; count < repetitions; count += 1) {
    for (const [index, { actions }] of subjects.entries()) {
      const startedAt = performance.now()
      await actions[action]?.()
      milliseconds[index]?.push(performance.now() - startedAt)
    }
  }
  return subjects.map(({ recorded }, index) => ({
    milliseconds: milliseconds[index] ?? [],
    statements: recorded.take(),
  }))
}

async function explain(action: string, { recorded }: Subject, found: Recorded[]): Promise<string> {
  const sum = ({ milliseconds }: Recorded) => milliseconds.reduce((total, each) => total + each, 0)
  const [slowest] = found.sort((a, b) => sum(b) - sum(a))
  if (!slowest) return `- ${action} is slower, but none of its statements is.`
  const plan = await recorded.plan(slowest)
  const text = slowest.sql.replace(/\s+/g, ' ')
  return [`- ${action} is slower:`, text, ...plan.map((line) => `- ${line.trim()}`)]
    .map((line) => line.slice(0, lineLengthMax))
    .join('\n  ')
}
