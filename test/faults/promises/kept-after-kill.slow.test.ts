/** P1: a run acknowledged with 202 survives kill -9 of every process, and finishes once. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type ApiMember, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { newLedger, startCallers, untilAcknowledged, waitForOutcome } from '../../support/ledger.ts'
import { until } from '../../support/service.ts'
import { record } from '../figures.ts'

const rounds = process.env.TEST_SET === 'slow' ? 2 : 3
const acknowledgedInRound = 100

type Kind = 'service' | 'worker' | 'executor'

const disturbances = [
  { process: 'worker', signal: 'SIGKILL' },
  { process: 'executor', signal: 'SIGKILL' },
  { process: 'service', signal: 'SIGSTOP' },
  { process: 'worker', signal: 'SIGSTOP' },
  { process: 'service', signal: 'SIGKILL' },
] as const satisfies { process: Kind; signal: NodeJS.Signals }[]
const acknowledgedInDisturbance = 20
/** Longer than a lease. */
const frozenMilliseconds = 4000

const commandLines = { worker: / worker$/, executor: /executor\.ts/ }

/** Finds a process of the member's tree; `undefined` while it is being started. */
function findProcess(service: number, kind: Kind): number | undefined {
  if (kind === 'service') return service
  const worker = childrenOf(service).find((pid) => commandLines.worker.test(commandLineOf(pid)))
  if (kind === 'worker' || worker === undefined) return worker
  return childrenOf(worker).find((pid) => commandLines.executor.test(commandLineOf(pid)))
}

const commandLineOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('kill -9 of every process under load loses no acknowledged run and finishes none twice', async (test) => {
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const ledger = newLedger()
    let killed = 0
    for (let round = 1; round <= rounds; round += 1) {
      const members = await Promise.all([fleet.api({ worker: true }), fleet.api({ worker: true })])
      const urls = members.map(({ executionUrl }) => executionUrl)
      const stop = startCallers(ledger, { urls: () => urls, key })
      await untilAcknowledged(ledger, round * acknowledgedInRound)
      await Promise.all([fleet.kill(), fleet.storage.halt?.()])
      killed += members.length
      await stop()
      await fleet.storage.resume?.()
    }
    await fleet.api({ worker: true })
    const outcome = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
    const { lost, duplicated, unsuccessful, attempts } = outcome
    record({
      promise: 'P1',
      store: kind.name,
      fault: 'kill -9 of every process under load',
      figures: { acknowledged: ledger.acknowledged.length, killed, lost, duplicated },
      remark: `${attempts} attempts; ${ledger.withoutResponse} connections broken`,
    })
    expect({ lost, duplicated, otherwise: unsuccessful }).toEqual({ lost: 0, duplicated: 0, otherwise: [] })
    expect(ledger.withoutResponse).toBeGreaterThan(0)
  })

  test('kills and freezes of single processes of every kind lose no acknowledged run and finish none twice', async (test) => {
    const fleet = await newFleet(test, kind)
    const { key } = await fleet.createAccount()
    const members = [await fleet.api({ worker: true }), await fleet.api({ worker: true })]
    const ledger = newLedger()
    const stop = startCallers(ledger, { urls: () => members.map(({ executionUrl }) => executionUrl), key })
    let [killed, frozen] = [0, 0]
    for (let round = 0; round < disturbances.length * 2; round += 1) {
      const { process: name, signal } = disturbances[round % disturbances.length] as (typeof disturbances)[number]
      const index = round % members.length
      const member = members[index] as ApiMember
      const pid = await until(`there is a process: ${name}`, () => findProcess(member.pid, name))
      const before = ledger.acknowledged.length
      process.kill(pid, signal)
      if (signal === 'SIGSTOP') {
        await delay(frozenMilliseconds)
        process.kill(pid, 'SIGCONT')
        frozen += 1
      } else {
        killed += 1
        if (name === 'service') members[index] = await fleet.api({ worker: true })
      }
      await untilAcknowledged(ledger, before + acknowledgedInDisturbance)
    }
    await stop()
    const outcome = await fleet.withStore((store) => waitForOutcome(store, ledger.acknowledged))
    const { lost, duplicated, unsuccessful, attempts } = outcome
    record({
      promise: 'P1',
      store: kind.name,
      fault: 'single services, workers and executors killed and frozen under load',
      figures: { acknowledged: ledger.acknowledged.length, killed, lost, duplicated },
      remark: `${frozen} times frozen, ${attempts} attempts`,
    })
    // A run whose executor is killed fails, since its workflow may have ended its own process.
    const otherwise = unsuccessful.filter((text) => !text.includes('workflowExited'))
    expect({ lost, duplicated, otherwise }).toEqual({ lost: 0, duplicated: 0, otherwise: [] })
  })
})
