/** Which actions a full store makes slower, one at a time in one process, and how it answers the statements of those. */
import { type Actions, actionsOn } from './actions.ts'
import type { Choice } from './choice.ts'
import { median, print, table } from './figures.ts'
import { type FilledStore, FilledStores } from './filled-store.ts'
import { type Recorded, RecordedStore } from './recorded-store.ts'

const timesEach = 20
/** Slower by less than this is nothing that anyone notices. */
const noticedMilliseconds = 5
const noticedFactor = 2
/** Values of a plan may be many ids. */
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

export async function statements({ stores: kinds, finished }: Choice): Promise<void> {
  const stores = new FilledStores()
  // What is waited for here keeps no process alive: an account rests after its runs were counted.
  const awake = setInterval(() => {}, 1000)
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
    clearInterval(awake)
    await stores.close()
  }
}

async function open(filled: FilledStore): Promise<Subject> {
  const store = await filled.open()
  const recorded = new RecordedStore(store)
  const actions = await actionsOn(recorded.store, filled.apiKeys[0] ?? '')
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
    const isSlower = full > empty * noticedFactor && full - empty > noticedMilliseconds
    const last = subjects.at(-1)
    if (isSlower && last) plans.push(await explain(action, last, measured.at(-1)?.statements ?? []))
  }
  const sizes = subjects.map(({ filled }) => `${filled.finished.toLocaleString('en')} runs`)
  return [table([[`${subjects[0]?.filled.kind}: median of`, ...sizes, 'most ÷ least'], ...rows]), ...plans].join('\n')
}

/** The stores take turns. */
async function measure(subjects: Subject[], action: string): Promise<Measured[]> {
  const milliseconds = subjects.map((): number[] => [])
  for (const { recorded } of subjects) recorded.take()
  for (let count = 0; count < timesEach; count += 1) {
    for (const [index, { actions }] of subjects.entries()) {
      const begun = performance.now()
      await actions[action]?.()
      milliseconds[index]?.push(performance.now() - begun)
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
  if (!slowest) return `- ${action} is slower, and no statement of it is.`
  const plan = await recorded.plan(slowest)
  const text = slowest.sql.replace(/\s+/g, ' ')
  return [`- ${action} is slower:`, text, ...plan.map((line) => `- ${line.trim()}`)]
    .map((line) => line.slice(0, lineLengthMax))
    .join('\n  ')
}
