/** Measures the document with an operation for each workflow: CPU time to build it, and to get it from the cache. */
import { buildSnapshot } from '../src/domain/deployments/build-snapshot.ts'
import { Workflows } from '../src/domain/workflows/workflows.ts'
import { workflowsDocument } from '../src/domain/workflows/workflows-document.ts'
import { median, print, table } from './figures.ts'

const workflowCounts = [10, 100, 500]
const repetitions = 15

export async function measureWorkflowsDocument(): Promise<void> {
  const { workflows: examples } = await buildSnapshot(new URL('../examples/workflows', import.meta.url).pathname)
  const rows = workflowCounts.map((count) => {
    const list = Array.from({ length: count }, (_, index) => {
      const example = examples[index % examples.length] as (typeof examples)[number]
      return { ...example, id: `${example.id}-${index}` }
    })
    const registry = new Workflows(list)
    const [built, cached]: [number[], number[]] = [[], []]
    let sizeBytes = 0
    for (let round = 0; round < repetitions; round++) {
      // The cache has one document, so another address builds it again, as a deployment does.
      const get = () => workflowsDocument(registry, `http://127.0.0.1:${round}`).bytes.length
      built.push(cpuMilliseconds(get))
      cached.push(cpuMilliseconds(get))
      sizeBytes = get()
    }
    const figures = [built[0] ?? 0, median(built), median(cached)].map((each) => `${each.toFixed(2)} ms`)
    return [count, `${Math.round(sizeBytes / 1000)} kB`, ...figures]
  })
  print(table([['workflows', 'size', 'first', 'built', 'from the cache'], ...rows]))
}

function cpuMilliseconds(act: () => unknown): number {
  const before = process.cpuUsage()
  act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
