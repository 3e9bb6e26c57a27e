/** P10: an expired key stays expired, even if the clock of a process steps back. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { openAdministration } from '../../support/service.ts'
import { record } from '../figures.ts'

const hour = 3_600_000
const clock = new URL('./stepping-clock.ts', import.meta.url)

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('a key that expired in one process is refused by all, even with the clock before its expiry', async (test) => {
    const fleet = await newFleet(test, kind)
    const file = join(fleet.storage.directory, 'clock')
    const setClockStep = (milliseconds: number) => writeFileSync(file, String(milliseconds))
    setClockStep(0)
    const settings = { NODE_OPTIONS: `--import=${clock.href}`, CLOCK_STEP: file }
    const stepped = await fleet.api({ settings })
    const other = await fleet.api()
    const administration = await openAdministration(readConfig(fleet.settings))
    test.onTestFinished(() => administration.close())
    const account = await administration.createAccount()
    const { value } = await account.createKey({ expiresAt: Date.now() + hour })
    const requestStatus = async ({ executionUrl }: { executionUrl: string }, key = value) => {
      const response = await fetch(`${executionUrl}/v1/execution/workflows`, {
        headers: { Authorization: `Bearer ${key}` },
      })
      await response.arrayBuffer()
      return response.status
    }
    expect([await requestStatus(stepped), await requestStatus(other)]).toEqual([200, 200])
    setClockStep(2 * hour)
    expect(await requestStatus(stepped)).toBe(401)
    const later: number[] = []
    for (const clockStep of [0, -hour, -24 * hour]) {
      setClockStep(clockStep)
      later.push(await requestStatus(stepped), await requestStatus(other))
    }
    const restarted = await fleet.api({ settings })
    later.push(await requestStatus(restarted))
    const accepted = later.filter((status) => status !== 401).length
    record({
      promise: 'P10',
      store: kind.name,
      fault: 'clock of a process forward, then back before the expiry (in its Date)',
      figures: { refused: later.length - accepted },
      remark: `${accepted} accepted`,
    })
    expect(later).toEqual(later.map(() => 401))
    // Other keys are accepted at that time.
    expect(await requestStatus(restarted, account.key)).toBe(200)
  })
})
