/** P17: a run is executed by the deployment that validated it, whatever is deployed, rolled back and killed meanwhile. */
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import type { Snapshot } from '../../../src/domain/deployments/snapshot.ts'
import type { Store } from '../../../src/storage/store.ts'
import { type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun, waitForOutcome } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { writtenSnapshot } from '../../support/snapshots.ts'
import { record } from '../figures.ts'

const rounds = process.env.TEST_SET === 'reliability' ? 50 : 8
const activationsPerRound = 4
const runsPerActivation = 4
const seed = 17

/** Its code, a module that it imports, and its schemas all have the version. A third of the runs needs two attempts. */
function snapshotOf(version: string): Snapshot {
  const snapshot = writtenSnapshot({
    stamp: {
      version,
      module: `import { imported } from './chunks/imported.js'
        export default { async run({ variables, attempt }) {
          await new Promise((resolve) => setTimeout(resolve, 20))
          if (attempt === 1 && Math.random() < 0.3) throw new Error('once more')
          return { version: '${version}', imported, validated: variables.validated }
        } }`,
      variables: { type: 'object', properties: { validated: { const: version, default: version } } },
      output: { type: 'object', properties: { version: { const: version } } },
      retry: { maxAttempts: 10, backoffSeconds: 0.5, backoffFactor: 1 },
    },
  })
  const imported = { path: 'chunks/imported.js', content: `export const imported = '${version}'` }
  return { ...snapshot, files: [imported, ...snapshot.files] }
}

/** Deploys versions, and rolls back every fourth time. Returns the version of each deployment. */
function openActivations(deployments: Deployments) {
  const versions = new Map<string, string>()
  let count = 0
  const activate = async () => {
    count += 1
    if (count % 4 === 0) return void (await deployments.rollback(null, operator))
    const version = `1.0.${count}`
    const options = { accountId: null, by: operator, directory: '/workflows' }
    const { deployment } = await deployments.deploy(snapshotOf(version), options)
    versions.set(deployment.id, version)
  }
  return { versions, activate }
}

type ReplacedMember = Member & { executionUrl?: string }

/** Kills a process at a pseudo-random time, and replaces it. The first two serve the API, the others are workers. */
async function replaceOne(fleet: Fleet, members: ReplacedMember[], random: () => number) {
  const index = random() < 0.2 ? Math.floor(random() * 2) : 2 + Math.floor(random() * (members.length - 2))
  await members[index]?.kill()
  members[index] = index < 2 ? await fleet.api() : await fleet.worker()
}

async function readRuns(store: Store, ids: readonly string[]) {
  const rows = []
  for (let from = 0; from < ids.length; from += 500) {
    const some = store.read.query
      .selectFrom('runs')
      .selectAll()
      .where('id', 'in', ids.slice(from, from + 500))
    rows.push(...(await some.execute()))
  }
  return rows
}

describe.concurrent.each(fleetStores)('on the store "$name"', (kind) => {
  test('every run is executed by the code that it was pinned to', { timeout: 1_200_000 }, async (test) => {
    const fleet = await newFleet(test, kind, { settings: { WORKFLOWS_DIR: '' } })
    const { key } = await fleet.createAccount()
    const random = seededRandom(seed)
    await fleet.withStore(async (store) => {
      const deployments = await new Deployments(store).open()
      const { versions, activate } = openActivations(deployments)
      await activate()
      const members: ReplacedMember[] = [
        await fleet.api(),
        await fleet.api(),
        await fleet.worker(),
        await fleet.worker(),
      ]
      const ids: string[] = []
      const queue = async (turn: number) => {
        const { executionUrl = '' } = members[turn % 2] ?? {}
        // A delayed run starts after further activations.
        const delay = turn === 0 ? '?delaySeconds=1' : ''
        const response = await queueRun(executionUrl, key, `stamp${delay}`, {})
        if (response?.status === 202 && response.id) ids.push(response.id)
      }
      for (let round = 0; round < rounds; round += 1) {
        const replacing = replaceOne(fleet, members, random)
        for (let count = 0; count < activationsPerRound; count += 1) {
          await activate()
          await Promise.all(Array.from({ length: runsPerActivation }, (_, turn) => queue(turn)))
        }
        await replacing
      }
      const { lost, duplicated, unsuccessful } = await waitForOutcome(store, ids)
      const rows = await readRuns(store, ids)
      const executed = rows.map(({ output, workflow_version, deployment_id }) => {
        const { version, imported, validated } = JSON.parse(output ?? '{}')
        return new Set([version, imported, validated, workflow_version, versions.get(deployment_id ?? '')]).size
      })
      const wrong = executed.filter((distinct) => distinct !== 1).length
      const activations = await store.read.query.selectFrom('deployment_activations').select('at').execute()
      const isLate = ({ created_at, started_at }: (typeof rows)[number]) =>
        activations.some(({ at }) => at > created_at && at < (started_at ?? 0))
      const late = rows.filter(isLate).length
      deployments.close()
      record({
        promise: 'P17',
        store: kind.name,
        fault: `${rounds * activationsPerRound} deployments and rollbacks under load, ${rounds} kills`,
        figures: { acknowledged: ids.length, killed: rounds, lost, duplicated },
        remark: `${versions.size} deployments; ${late} runs started after a later one was current; ${wrong} executed by other code`,
      })
      expect({ lost, duplicated, unsuccessful }).toEqual({ lost: 0, duplicated: 0, unsuccessful: [] })
      expect(wrong).toBe(0)
      expect(new Set(rows.map(({ deployment_id }) => deployment_id)).size).toBeGreaterThan(rounds)
      expect(late).toBeGreaterThan(0)
    })
  })
})
