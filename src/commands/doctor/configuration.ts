/** Whether the environment is a configuration; what is wrong with it is told whole, and the rest is examined all the same. */
import { type Config, ConfigError, readConfig, settings } from '../../config.ts'
import { type Finding, failAsSaid, ok } from './finding.ts'

export interface ReadConfiguration {
  /** Without the variables that were refused, as if they were not set. */
  config: Config
  refusals: readonly string[]
  /** The variables that were refused: what depends on them cannot be examined. */
  refused: ReadonlySet<string>
}

const names = Object.keys(settings)

/** Reads as `readConfig` does, and again without what it has refused, until it has refused everything that is wrong. */
export function readAll(environment: NodeJS.ProcessEnv): ReadConfiguration {
  const refusals: string[] = []
  const refused = new Set<string>()
  const left = { ...environment }
  for (;;) {
    try {
      return { config: readConfig(left), refusals, refused }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      refusals.push(error.message)
      const blamed = names.filter((name) => left[name] && new RegExp(`\\b${name}\\b`).test(error.message))
      if (blamed.length === 0) throw error
      for (const name of blamed) {
        refused.add(name)
        delete left[name]
      }
    }
  }
}

export function checkConfiguration({ refusals }: ReadConfiguration, environment: NodeJS.ProcessEnv): Finding {
  const [first, ...others] = refusals
  if (first !== undefined) {
    const { status, detail, advice } = failAsSaid(first)
    return { status, detail, advice: [advice, ...others].join(' ') }
  }
  const set = Object.keys(settings).filter((name) => environment[name])
  return ok(set.length === 0 ? 'the defaults alone' : `the defaults, but for ${set.join(', ')}`)
}
