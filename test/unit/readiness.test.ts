/** What readiness logs about the store. Probes check it every second or two. */
import { expect, test } from 'vitest'
import { type Store, StoreUnavailable } from '../../src/storage/store.ts'
import { Readiness } from '../../src/surfaces/management/readiness.ts'

/** A readiness whose store checks end when the test says so, with its log lines. */
function openReadiness() {
  const checks: PromiseWithResolvers<void>[] = []
  const check = () => {
    const result = Promise.withResolvers<void>()
    checks.push(result)
    return result.promise
  }
  const lines: string[] = []
  const log = { info: (line: string) => lines.push(line), warn: (_: object, line: string) => lines.push(line) }
  const readiness = new Readiness({ check } as Store, log as never)
  readiness.start()
  const lost = new StoreUnavailable('Query read timeout')
  const startCheck = () => readiness.check().catch(() => {})
  return { readiness, checks, lines, lost, startCheck }
}

test('a check that fails after a later one has succeeded is ignored', async () => {
  const { checks, lines, lost, startCheck } = openReadiness()
  const [first, second, third] = [startCheck(), startCheck(), startCheck()]
  checks[1]?.reject(lost)
  await second
  checks[2]?.resolve()
  await third
  checks[0]?.reject(lost)
  await first
  expect(lines).toEqual(['store unavailable; not ready', 'store available; ready'])
})

test('a failing store is not logged while the process stops', async () => {
  const { readiness, checks, lines, lost, startCheck } = openReadiness()
  const only = startCheck()
  readiness.stop()
  checks[0]?.reject(lost)
  await only
  expect(lines).toEqual([])
})
