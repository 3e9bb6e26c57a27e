/** The test kit for authors shows what a worker would do: the same workflows run in both, and their results are compared. */
import { fileURLToPath } from 'node:url'
import { runWorkflow } from 'execution-service/testing'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Principal } from '../../src/domain/api-keys/api-key.ts'
import { eventsAfter } from '../../src/domain/queue/runs.sql.ts'
import type { WorkflowDefinition } from '../../src/domain/workflows/define-workflow.ts'
import { type Domain, newAccount, openDomain, queueRun } from '../support/domain.ts'
import { buildOnce } from '../support/snapshots.ts'
import { startWorker, waitForRun } from '../support/worker.ts'
import conform, { ways } from './conformance/conform.ts'
import page from './conformance/page.ts'
import patient from './conformance/patient.ts'
import strict from './conformance/strict.ts'
import waiting, { waitingWays } from './conformance/waiting.ts'

const directory = fileURLToPath(new URL('./conformance', import.meta.url))

type Definition = WorkflowDefinition<object, object, boolean>
type Variables = Record<string, unknown>

const password = 'correct horse "battery"'
const values = [
  { name: 'ok' },
  { name: 'x' },
  { name: 1 },
  { name: 'ok', kind: 'c' },
  { name: 'ok', more: 1 },
  {},
  null,
]

const cases = [
  ...ways.map((how) => [conform, { how, ...(how.startsWith('secret') && { password }) }]),
  [conform, { how: 'steps', failures: 1 }],
  [conform, { how: 'steps', failures: 3 }],
  [conform, { how: 'failingStep', failures: 2 }],
  [conform, { how: 'unchanged', list: [{ id: 1 }, { id: 2, size: 5 }], when: '2026-01-01T00:00:00Z' }],
  ...values.map((value) => [strict, { value }]),
  [strict, { value: { name: 'ok', token: 'hidden' } }],
  ...['until aborted', 'and clean up', 'deaf', 'briefly'].map((how) => [patient, { how }]),
  ...waitingWays.map((how) => [waiting, { how, password }]),
  ...[{}, { how: 'failing' }, { how: 'closing' }].map((variables) => [page, variables]),
] as [Definition, Variables][]

/** By the index of their case. The kit's fake clock replaces the timers of this process, which the worker needs. */
const inKit: unknown[] = []
const inService: Promise<unknown>[] = []
const finish: (() => unknown)[] = []

beforeAll(async () => {
  for (const [workflow, variables] of cases) inKit.push(await runInKit(workflow, variables))
  const suite = { onTestFinished: (act: () => unknown) => void finish.push(act) } as never
  const domain = await openDomain(suite, { snapshot: await buildOnce(directory) })
  const { principal } = await newAccount(domain)
  await startWorker(suite, domain, { memoryMegabytesMax: 512 })
  for (const [workflow, variables] of cases) inService.push(runInService(domain, principal, workflow, variables))
}, 120_000)
afterAll(async () => {
  for (const act of finish.reverse()) await act()
})

async function runInService(
  domain: Domain,
  principal: Principal,
  { id: workflowId }: Definition,
  variables: Variables,
) {
  const queued = await queueRun(domain, principal, { workflowId, variables })
  if (workflowId === 'waiting' && ['answer', 'race'].includes(String(variables.how))) {
    await vi.waitUntil(async () => (await domain.runs.get(principal.accountId, queued.id))?.waitingFor === 'answer', {
      timeout: 60_000,
    })
    await domain.waits.answer(
      principal.accountId,
      queued.id,
      'approval',
      { approved: true },
      { link: 'test', address: null },
    )
  }
  const { status, reason, output, error, attempts, artifacts } = await waitForRun(domain, queued)
  // The test kit records no evidence.
  const ofWorkflow = artifacts.filter(({ kind }) => kind === 'workflow')
  const described = ofWorkflow.map(({ name, mediaType, sizeBytes }) => ({ name, mediaType, sizeBytes }))
  const events = (await eventsAfter(domain.store.read, queued.id, 0, 10_000)).filter(({ type }) => type !== 'status')
  const reports = events.map(({ type, data }) => ({ type, data }))
  return { status, reason, output, error, attempts, artifacts: sorted(described), reports }
}

async function runInKit(workflow: Definition, variables: Variables) {
  const surroundings = workflow.browser ? { browser: 'chromium' as const } : { clock: 'fake' as const }
  const child = ({ how }: Variables) => {
    if (how === 'child') return 'grown'
    throw new Error('The child fails.')
  }
  const approval = variables.how === 'timeout' ? undefined : { approved: true }
  const callers = workflow.id === 'waiting' ? { calls: child, answers: { approval } } : {}
  const run = await runWorkflow(workflow, { variables, retry: true, ...surroundings, ...callers })
  const { status, reason, output, error, attempts, artifacts, events } = run
  const described = artifacts.map(({ name, mediaType, content }) => ({ name, mediaType, sizeBytes: content.length }))
  const reports = events.map(({ type, data }) => ({ type, data: JSON.parse(JSON.stringify(data)) }))
  return { status, reason, output, error, attempts, artifacts: sorted(described), reports }
}

/** The service lists artifacts by the time of their last write. */
function sorted<Artifact extends { name: string }>(artifacts: Artifact[]): Artifact[] {
  return artifacts.sort((a, b) => (a.name < b.name ? -1 : 1))
}

test.for(cases.map(([{ id }, variables], index) => [id, JSON.stringify(variables), index] as const))(
  'the test kit runs %s with %s as a worker does',
  async ([, , index]) => {
    const service = await inService[index]
    expect(service).toHaveProperty('status')
    expect(inKit[index]).toEqual(service)
  },
)
