/** Records the calls that make files durable, in their order. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Test } from './domain.ts'

/** Returns a list to which each `sync`, `link` and `rename` of this process adds a line, until the test ends. */
export function recordFileCalls(test: Test): string[] {
  const calls: string[] = []
  const { fsyncSync, linkSync, renameSync } = fs
  const replace = (replacements: Partial<typeof fs>) => {
    Object.assign(fs, replacements)
    syncBuiltinESMExports()
  }
  replace({
    fsyncSync: (descriptor) => {
      calls.push(`sync ${fs.readlinkSync(`/proc/self/fd/${descriptor}`)}`)
      fsyncSync(descriptor)
    },
    linkSync: (from, to) => {
      calls.push(`link ${to}`)
      linkSync(from, to)
    },
    renameSync: (from, to) => {
      calls.push(`rename ${to}`)
      renameSync(from, to)
    },
  })
  test.onTestFinished(() => replace({ fsyncSync, linkSync, renameSync }))
  return calls
}
