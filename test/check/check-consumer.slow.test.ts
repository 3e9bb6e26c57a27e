/** Example consumers, correct ones and with planted faults, against all situations. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Checker, type ConsumerCheck, type Report, situations } from '../../src/check/check-consumer.ts'
import { useCommand } from '../../src/check/command-use.ts'
import { openReceiver } from './consumers/receiver.ts'
import * as withClient from './consumers/with-client.ts'
import * as withFetch from './consumers/with-fetch.ts'
import { type ConsumerName, plantedFaults } from './planted-faults.ts'

let checker: Checker

beforeAll(async () => {
  checker = await Checker.start(fileURLToPath(new URL('../../examples/workflows', import.meta.url)))
})
afterAll(() => checker?.stop())

const secret = `whsec_${Buffer.alloc(24, 'secret').toString('base64')}`
const names = Object.keys(plantedFaults) as ConsumerName[]

async function check(
  name: ConsumerName,
  fault: string,
  options: Pick<ConsumerCheck, 'only' | 'seed'>,
): Promise<Report> {
  if (name === 'receiver') {
    const { close, ...webhook } = await openReceiver(fault, secret)
    return checker.check({ ...options, webhook }).finally(close)
  }
  return checker.check({ ...options, use: usesOf(name, fault), atOnce: 8 })
}

function usesOf(name: Exclude<ConsumerName, 'receiver'>, fault: string): NonNullable<ConsumerCheck['use']> {
  if (name === 'with-client') return (service) => withClient.countWords(fault, service)
  if (name === 'with-fetch') return (service) => withFetch.countWords(fault, service)
  const program = name.endsWith('.py') ? 'python3' : 'bash'
  const file = fileURLToPath(new URL(`./consumers/${name}`, import.meta.url))
  return (service) => useCommand(['env', `FAULT=${fault}`, program, file], service, { done: {} })
}

test('there are at least 60 situations, each with its own id, and a rule', () => {
  expect(situations.length).toBeGreaterThanOrEqual(60)
  expect(new Set(situations.map(({ id }) => id)).size).toBe(situations.length)
})

test.each(names)('%s without faults has no findings', async (name) => {
  const { findings, results } = await check(name, '', {})
  expect(findings).toEqual([])
  expect(results.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(25)
})

const faults = names.flatMap((name) => Object.entries(plantedFaults[name]).map((fault) => [name, ...fault] as const))

test.concurrent.each(faults)('%s: the fault %s is found by the situation %s', async (name, fault, situation) => {
  const { findings } = await check(name, fault, { only: [situation] })
  expect(findings.map((finding) => finding.situation)).toContain(situation)
})

test('the same seed leads to the same report', async () => {
  const options = { only: ['unknown-member', 'queue-cut-after', 'run-cancelled'], seed: 'again' }
  const [first, second] = [await check('with-fetch', 'newKey', options), await check('with-fetch', 'newKey', options)]
  expect(first.findings).not.toEqual([])
  expect(second).toEqual(first)
})
