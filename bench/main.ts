/** `npm run bench`: runs benchmarks and prints tables. Compare figures within one run only. */
import { parseArgs } from 'node:util'
import { batch } from './batch.ts'
import { type BenchOptions, options, parseOptions } from './bench-options.ts'
import { browser } from './browser.ts'
import { deploying } from './deploying.ts'
import { print } from './figures.ts'
import { idle } from './idle.ts'
import { largeSchemas } from './large-schemas.ts'
import { comparePeers } from './peers.ts'
import { queueing } from './queueing.ts'
import { reading } from './reading.ts'
import { reloading } from './reloading.ts'
import { remoteWorkers } from './remote-workers.ts'
import { scaling } from './scaling.ts'
import { schedules } from './schedules.ts'
import { secrets } from './secrets.ts'
import { simulator } from './simulator.ts'
import { starting } from './starting.ts'
import { statements } from './statements.ts'
import { tenants } from './tenants.ts'
import { waits } from './waits.ts'
import { webhooks } from './webhooks.ts'
import { measureWorkflowsDocument } from './workflows-document.ts'

type Benchmark = (options: BenchOptions) => Promise<unknown>

const defaultBenchmarks: Record<string, Benchmark> = {
  starting,
  queueing,
  batch,
  browser,
  reloading,
  deploying,
  document: measureWorkflowsDocument,
  'large-schemas': largeSchemas,
}
/** These take up to half an hour, and gigabytes of disk or packages of their own, so they run only when named. */
const longBenchmarks: Record<string, Benchmark> = {
  idle,
  peers: comparePeers,
  reading,
  'remote-workers': remoteWorkers,
  scaling,
  schedules,
  secrets,
  simulator,
  statements,
  tenants,
  waits,
  webhooks,
}
const benchmarks = { ...defaultBenchmarks, ...longBenchmarks }

const selected = parseSelection()
if (selected) {
  print(`Node ${process.version}. All figures are medians.\n`)
  for (const name of selected.names) await benchmarks[name]?.(selected.options)
}

function parseSelection(): { names: string[]; options: BenchOptions } | undefined {
  try {
    const { positionals, values } = parseArgs({ options, allowPositionals: true })
    const unknown = positionals.find((name) => !Object.hasOwn(benchmarks, name))
    if (unknown !== undefined) {
      const [all, defaults] = [benchmarks, defaultBenchmarks].map((each) => Object.keys(each).join(', '))
      throw new Error(`Unknown benchmark ${unknown}: choose from ${all}; the default is ${defaults}.`)
    }
    return {
      names: positionals.length > 0 ? positionals : Object.keys(defaultBenchmarks),
      options: parseOptions(values),
    }
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
    return undefined
  }
}
