/** Metrics have labels for a bounded number of workflows, whatever accounts deploy. */
import { expect, type TestContext, test } from 'vitest'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import { Workers } from '../../src/domain/queue/workers.ts'
import { Metrics } from '../../src/surfaces/management/metrics.ts'
import { labelledMax, WorkflowLabels } from '../../src/surfaces/management/workflow-labels.ts'
import { newAccount, openDomain, queueRun, workflow } from '../support/domain.ts'

const many = Array.from({ length: 12_000 }, (_, index) => workflow({ id: `workflow-${index}` }))

async function open(test: TestContext) {
  const domain = await openDomain(test, { workflows: many.slice(0, 200) })
  const metrics = new Metrics('worker', domain.store)
  const observe = metrics.registerAttemptMetrics()
  const queue = { tx: domain.store.read, workers: new Workers(domain.store), workflows: () => many }
  metrics.registerInstallationMetrics({ ready: async () => {}, ...queue })
  const execute = (workflowId: string) => {
    metrics.runs.finished({ workflowId, status: 'succeeded', reason: null, seconds: 1 } as never)
    const observer = observe({ workflowId, attempt: 1, availableAt: Date.now() } as Claim)
    observer.started?.()
    observer.ended?.({ kind: 'cancelled' })
  }
  /** The values of a metric by workflow. */
  const read = async (name: string) => {
    const found = (await metrics.registry.getMetricsAsJSON()).find((each) => each.name === `execution_service_${name}`)
    const values = found?.values.filter(({ labels }) => (labels.waiting_for ?? 'worker') === 'worker')
    return new Map(values?.map(({ labels, value }) => [String(labels.workflow), Number(value)]))
  }
  return { domain, metrics, execute, read }
}

test('the workflows that are used have labels, and further ones share one', async (test) => {
  const { metrics, execute, read } = await open(test)
  metrics.initializeWorkflows(many)
  for (const { id } of many.toReversed().slice(0, labelledMax + 50)) execute(id)
  const started = await read('started_attempts_total')
  expect(started.size).toBe(labelledMax + 1)
  expect(started.get('(other)')).toBe(50)
  expect(started.get('workflow-11999')).toBe(1)
  const text = await metrics.text()
  expect(text.length).toBeLessThan(1_000_000)
  expect(new Set(text.match(/workflow="[^"]+"/g)).size).toBeLessThanOrEqual(2 * labelledMax + 1)
})

test('a workflow that is no longer deployed leaves with all of its series', async (test) => {
  const { metrics, execute } = await open(test)
  metrics.initializeWorkflows([{ id: 'removed' }, { id: 'kept' }])
  for (const id of ['removed', 'kept']) execute(id)
  metrics.initializeWorkflows([{ id: 'kept' }])
  const text = await metrics.text()
  expect(text).not.toContain('workflow="removed"')
  expect(text).toMatch(/started_attempts_total\{[^}]*workflow="kept"[^}]*\} 1/)
  expect(text).toMatch(/finished_runs_total\{[^}]*workflow="kept"[^}]*\} 1/)
})

test('a label goes to another workflow when it was not used for an hour', () => {
  let now = 0
  const labels = new WorkflowLabels(() => now)
  const metric = { name: 'runs', remove: () => {} } as never
  const label = (id: string) => labels.of<'workflow'>(metric, id, {}).workflow
  for (let index = 0; index < labelledMax; index += 1) label(`workflow-${index}`)
  expect(label('new')).toBe('(other)')
  now = 3_600_001
  expect([label('workflow-0'), label('new'), label('workflow-1')]).toEqual(['workflow-0', 'new', 'workflow-1'])
})

test('the gauges of the queue name the workflows with the most runs, and sum the others', async (test) => {
  const { domain, read } = await open(test)
  const { principal } = await newAccount(domain)
  for (let index = 0; index < labelledMax + 2; index += 1)
    await queueRun(domain, principal, { workflowId: `workflow-${index}` })
  await queueRun(domain, principal, { workflowId: 'workflow-99' })
  const waiting = await read('waiting_runs')
  expect([waiting.size, waiting.get('workflow-99'), waiting.get('(other)')]).toEqual([labelledMax + 1, 2, 2])
  expect((await read('oldest_waiting_run_seconds')).size).toBe(labelledMax + 1)
})
