/** P8: once a key is deleted, every process refuses it. */
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { openAdministration, until } from '../../support/service.ts'
import { record } from '../figures.ts'

const processes = 3
const rounds = 15
const callersOfEach = 4

interface TimedResponse {
  began: number
  status: number
}

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('no process accepts a request that begins after the deletion has returned', async (test) => {
    const fleet = await newFleet(test, kind)
    const apis = await Promise.all(Array.from({ length: processes }, () => fleet.api()))
    const administration = await openAdministration(readConfig(fleet.settings))
    test.onTestFinished(() => administration.close())
    const account = await administration.createAccount()
    const counts = { before: 0, after: 0, acceptedAfter: 0 }
    for (let round = 0; round < rounds; round += 1) {
      const key = await account.createKey()
      const results: TimedResponse[] = []
      let calling = true
      const call = async (url: string) => {
        while (calling) {
          const began = performance.now()
          const headers = { Authorization: `Bearer ${key.value}` }
          const response = await fetch(`${url}/v1/execution/workflows`, { headers })
          await response.arrayBuffer()
          results.push({ began, status: response.status })
        }
      }
      const urls = apis.flatMap(({ executionUrl }) => Array(callersOfEach).fill(executionUrl) as string[])
      const callers = urls.map(call)
      await until('the key is in use', () => results.length >= urls.length * 3)
      await account.deleteKey(key.id)
      const deleted = performance.now()
      await until('it is tried again', () => results.filter(({ began }) => began > deleted).length >= urls.length * 3)
      calling = false
      await Promise.all(callers)
      const later = results.filter(({ began }) => began > deleted)
      counts.before += results.length - later.length
      counts.after += later.length
      counts.acceptedAfter += later.filter(({ status }) => status !== 401).length
    }
    record({
      promise: 'P8',
      store: kind.name,
      fault: `${rounds} keys deleted while ${processes} processes are called with them`,
      figures: { refused: counts.after - counts.acceptedAfter },
      remark: `${counts.before} requests before, ${counts.after} after; ${counts.acceptedAfter} of these accepted`,
    })
    expect(counts.acceptedAfter).toBe(0)
    expect(counts.after).toBeGreaterThan(rounds)
  })
})
