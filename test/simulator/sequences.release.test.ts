/**
 * The simulator responds as the service on SQLite to random sequences of operations. `SEQUENCES` and `SEQUENCE_SEED` set how
 * many and which; a failure prints the shortest sequence that was found to fail.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, simulate, type World } from '../../src/simulator/simulator.ts'
import type { ReceivedResponse } from '../operations/document.ts'
import { startTestService, type TestService, testWorkflows, until } from '../support/service.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { Comparison, type Mismatch, type Step, sequenceOf } from './sequences.ts'

const sequences = Number(process.env.SEQUENCES ?? (process.env.TEST_SET === 'reliability' ? 100_000 : 1000))
const firstSeed = Number(process.env.SEQUENCE_SEED ?? 1)

/** Sequences of one account: later ones meet what earlier ones have left. */
const perAccount = Number(process.env.SEQUENCES_PER_ACCOUNT ?? 250)
const shrinkMax = Number(process.env.SEQUENCE_SHRINKS ?? 40)
const failuresMax = 5

let service: TestService
let simulator: Simulator
beforeAll(async () => {
  // Without a worker, whose attempts would end at other times.
  service = await startTestService({ worker: false, settings: { RATE_LIMIT_PER_MINUTE: '1000000' } })
  const settings = { API_DEPLOYMENTS: 'on' }
  simulator = await simulate(snapshotOf(testWorkflows), { now: new Date(), slots: 0, settings })
})
afterAll(async () => {
  await simulator.stop()
  await service.stop()
})

/** Runs the steps for a new account and a new world. */
async function compare(steps: readonly (readonly Step[])[], world: World) {
  const { key } = await service.createAccount()
  await world.reset()
  const begun = { world: await world.now(), service: Date.now() }
  const before = () => world.advanceTo(new Date(begun.world.getTime() + Date.now() - begun.service))
  const after = async (id: string, { status, text }: ReceivedResponse) => {
    if (status !== 202 || !id.startsWith('bulk')) return
    // The service continues a bulk action by itself, the simulator when its clock is advanced.
    const { id: actionId } = JSON.parse(text)
    await until('the bulk action has ended', async () => {
      const [action] = await service.rows<{ finished_at: number | null }>(
        'SELECT * FROM bulk_actions WHERE id = ?',
        actionId,
      )
      return !action || action.finished_at !== null
    })
    await world.advance({ seconds: 0 })
  }
  const comparison = new Comparison(
    [
      { ...urlsOf(service), apiKey: key },
      { ...urlsOf(world), apiKey: world.apiKey },
    ],
    { before, after },
  )
  try {
    for (const [index, sequence] of steps.entries()) {
      const mismatch = await comparison.run(sequence)
      if (mismatch) return { index, mismatch, comparison }
    }
    return { comparison }
  } finally {
    comparison.close()
  }
}

const urlsOf = ({ executionUrl, browserContextUrl }: World | TestService) => ({ executionUrl, browserContextUrl })

/** Removes steps as long as the rest still fails. */
async function shrink(failing: Step[], world: World): Promise<{ steps: Step[]; mismatch: Mismatch } | undefined> {
  let found: { steps: Step[]; mismatch: Mismatch } | undefined
  let steps = failing
  let size = Math.ceil(steps.length / 2)
  for (let tries = 0; tries < shrinkMax && size >= 1; ) {
    let isShorter = false
    for (let start = 0; start < steps.length && tries < shrinkMax; tries += 1) {
      const rest = steps.toSpliced(start, size)
      const { mismatch } = rest.length > 0 ? await compare([rest], world) : { mismatch: undefined }
      if (mismatch) {
        steps = rest.slice(0, mismatch.step + 1)
        found = { steps, mismatch }
        isShorter = true
      } else start += size
    }
    if (!isShorter) size = size === 1 ? 0 : Math.ceil(size / 2)
  }
  return found
}

test(`${sequences} random sequences of operations get equal responses`, { timeout: 3 * 3600_000 }, async () => {
  const world = await simulator.createWorld()
  const statuses = new Map<string, number>()
  const failures: string[] = []
  let operations = 0
  let byTime = 0
  for (let seed = firstSeed; seed < firstSeed + sequences; seed += perAccount) {
    const steps = Array.from({ length: Math.min(perAccount, firstSeed + sequences - seed) }, (_, index) =>
      sequenceOf(seed + index),
    )
    const { index, mismatch, comparison } = await compare(steps, world)
    operations += comparison.count
    for (const [key, count] of comparison.statuses) statuses.set(key, (statuses.get(key) ?? 0) + count)
    if (index === undefined || !mismatch) continue
    // A lease or a delay may have ended between the two responses: this does not happen in the same step again.
    if (!(await compare(steps.slice(0, index + 1), world)).mismatch) {
      byTime += 1
      continue
    }
    const shorter = failures.length === 0 ? await shrink(steps.slice(0, index + 1).flat(), world) : undefined
    const { steps: shown, mismatch: last } = shorter ?? { steps: [], mismatch }
    const lines = [`SEQUENCE_SEED=${seed} SEQUENCES=${index + 1}`, ...shown.map((step) => JSON.stringify(step))]
    failures.push([...lines, ...last.requests, ...last.responses.map((each) => JSON.stringify(each))].join('\n'))
    if (failures.length === failuresMax) break
  }
  expect(failures.join('\n\n')).toBe('')
  if (process.env.SEQUENCE_COUNTS)
    process.stderr.write(
      `${operations} operations, ${byTime} differences by time ${JSON.stringify(Object.fromEntries([...statuses].sort()))}\n`,
    )
  expect(byTime).toBeLessThanOrEqual(sequences / 1000 + 1)
  // The sequences reach successes, not only refusals.
  const succeeded = [...statuses].filter(([key]) => / 2\d\d$/.test(key)).reduce((sum, [, count]) => sum + count, 0)
  expect(succeeded).toBeGreaterThan(operations / 4)
})
