/** P20: a load of everything at once grows no process. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { newLedger, startCallers, waitForOutcome } from '../../support/ledger.ts'
import { megabytesOf } from '../../support/process-memory.ts'
import { record } from '../figures.ts'

/** Until caches, pools and the compiled code have their size. */
const warmUpSeconds = 30
const loadSeconds = 60
/** Of the memory at the end of the warm-up. */
const growthMax = 1.3

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('a load of everything at once loses nothing, and no process grows', async (test) => {
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const [api, worker] = [await fleet.api(), await fleet.worker()]
    const ledger = newLedger()
    const stop = startCallers(ledger, { urls: () => [api.executionUrl], key, count: 4 })
    const statuses = new Map<number, number>()
    let isLoading = true
    const call = async (url: string, init: RequestInit = {}) => {
      const response = await fetch(url, { ...init, headers: { 'Content-Type': 'application/json', ...init.headers } })
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      return { status: response.status, text: await response.text() }
    }
    const repeatedly = async (act: () => Promise<unknown>) => {
      while (isLoading) await act()
    }
    const bearer = { Authorization: `Bearer ${key}` }
    const runs = `${api.executionUrl}/v1/execution/runs`
    const contexts = `${api.browserContextUrl}/alpha/browser-contexts`
    const contextHeaders = { 'x-service-api-key': key }
    const useContext = async () => {
      const { text } = await call(contexts, { method: 'POST', headers: contextHeaders })
      const url = `${contexts}/${JSON.parse(text).id}`
      const body = JSON.stringify({ cookies: [], origins: [{ origin: 'https://example.com', localStorage: [] }] })
      await call(`${url}/storage-state`, { method: 'PUT', headers: contextHeaders, body })
      await call(`${url}/storage-state`, { headers: contextHeaders })
      await call(url, { method: 'DELETE', headers: contextHeaders })
    }
    const loops = [
      repeatedly(() => call(`${runs}?limit=100`, { headers: bearer })),
      repeatedly(() => call(`${runs}/${ledger.acknowledged.at(-1)}/events`, { headers: bearer })),
      repeatedly(() => call(`${runs}?limit=1000`, { headers: bearer })),
      repeatedly(() => call(runs, { headers: { Authorization: 'Bearer wrong' } })),
      repeatedly(useContext),
      repeatedly(() => call(`${api.managementUrl}/metrics`)),
    ]
    const total = () => Math.round(megabytesOf(api) + megabytesOf(worker))
    await delay(warmUpSeconds * 1000)
    const before = total()
    await delay(loadSeconds * 1000)
    const after = total()
    isLoading = false
    await Promise.all([stop(), ...loops])
    const { lost, duplicated, unsuccessful } = await fleet.withStore((store) =>
      waitForOutcome(store, ledger.acknowledged),
    )
    record({
      promise: 'P20',
      store: kind.name,
      fault: 'a load of everything at once',
      figures: { acknowledged: ledger.acknowledged.length, lost, duplicated, seconds: loadSeconds },
      remark: `memory ${before} MB after ${warmUpSeconds} s, ${after} MB at the end`,
    })
    expect({ lost, duplicated, unsuccessful }).toEqual({ lost: 0, duplicated: 0, unsuccessful: [] })
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([])
    expect(after).toBeLessThan(before * growthMax)
  })
})
