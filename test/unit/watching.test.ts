/** The Grafana dashboard, the alerts and docs/observability.md match the metrics of the service. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { expect, type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import { Workers } from '../../src/domain/queue/workers.ts'
import {
  type FailureReason,
  lossesMax,
  nextState,
  noRetry,
  type Outcome,
  type RunStatus,
} from '../../src/domain/runs/run-state.ts'
import { Metrics, queueMetrics } from '../../src/surfaces/management/metrics.ts'
import { openDomain } from '../support/domain.ts'

/** The metrics of a service and its worker in one process, before any request or run. */
async function openMetrics(test: TestContext) {
  const { store, workflows: of } = await openDomain(test)
  const workflows = of.list()
  const queue = { tx: store.read, workers: new Workers(store), workflows: () => workflows }
  const metrics = new Metrics('service', store)
  metrics.registerInstallationMetrics({ ready: async () => {}, ...queue })
  const requests = metrics.registerRequestMetrics(() => ({ run: 0, account: 0 }))
  requests.admit('execution', async () => ({}) as never)
  requests.countMismatch('execution')
  metrics.registerWebhookMetrics()
  metrics.registerAttemptMetrics()
  metrics.registerProcessMetrics()(() => ({ busy: 1, idle: 2, idleBytes: 3 }))
  metrics.initializeWorkflows(workflows)
  return { metrics, queue, workflows }
}

interface MetricDefinition {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  labelNames: string[]
}

/** All metrics, including those of Node.js. */
async function listMetrics(test: TestContext): Promise<MetricDefinition[]> {
  const { metrics } = await openMetrics(test)
  return metrics.registry.getMetricsAsArray() as unknown as MetricDefinition[]
}

const error = { name: 'Error', message: '' }
const failures: FailureReason[] = ['workflowFailed', 'workflowExited', 'outputInvalid', 'contextNotSaved']
const outcomes: Outcome[] = [
  { kind: 'succeeded', output: null },
  ...failures.map((reason) => ({ kind: 'failed' as const, reason, error })),
  { kind: 'timedOut' },
  { kind: 'cancelled' },
  { kind: 'workerLost' },
]

const ownCounter = /^execution_service_\w+_total$/

/** The values of the service's own counters. */
async function readCounters({ registry }: Metrics) {
  const metrics = await registry.getMetricsAsJSON()
  return metrics
    .filter(({ name }) => ownCounter.test(name))
    .flatMap(({ name, values }) => values.map(({ labels, value }) => ({ labels: { name, ...labels }, value })))
}

/** Labels by the names of metrics in queries, including the labels that Prometheus adds. */
function labelsByName(metrics: readonly MetricDefinition[]): Map<string, Set<string>> {
  const added = ['process', 'job', 'instance']
  return new Map(
    metrics.flatMap(({ name, type, labelNames }): [string, Set<string>][] => {
      const labels = new Set([...labelNames, ...added])
      if (type !== 'histogram') return [[name, labels]]
      return [
        [`${name}_bucket`, new Set([...labels, 'le'])],
        [`${name}_sum`, labels],
        [`${name}_count`, labels],
      ]
    }),
  )
}

const dashboard = JSON.parse(readFileSync('deploy/grafana/execution-service.json', 'utf8'))
const alerts = parse(readFileSync('deploy/prometheus/alerts.yaml', 'utf8'))

const panels: { title: string; targets: { expr: string; legendFormat: string }[] }[] = dashboard.panels.filter(
  ({ type }: { type: string }) => type !== 'row',
)
const rules: { alert: string; expr: string; annotations: Record<string, string> }[] = alerts.groups[0].rules

/** Queries, with the labels in their legends and annotations. */
const queries = [
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({ of: title, expr, named: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)] })),
  ),
  ...rules.map(({ alert, expr, annotations }) => ({
    of: alert,
    expr,
    named: [
      ...Object.values(annotations)
        .join()
        .matchAll(/\$labels\.(\w+)/g),
    ],
  })),
]

const metricPattern = /\b((?:execution_service|process|nodejs)_\w+)(?:\{([^}]*)\})?/g

/** Returns why a query is wrong, if it is. */
function findError(expr: string, named: RegExpMatchArray[], known: Map<string, Set<string>>): string | undefined {
  const metrics = [...expr.replaceAll(/\bby \([^)]*\)/g, '').matchAll(metricPattern)]
  if (metrics.length === 0) return 'uses no metric'
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/,\s*/))
  for (const [, name = '', matchers = ''] of metrics) {
    const labels = known.get(name)
    if (!labels) return `there is no metric ${name}`
    const matched = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)]
    const used = [...grouped, ...[...matched, ...named].map(([, label = '']) => label)]
    const unknown = used.find((label) => !labels.has(label))
    // It is enough if one metric of the query has the label.
    if (unknown && !metrics.some(([, other = '']) => known.get(other)?.has(unknown)))
      return `${name} has no label ${unknown}`
  }
  return undefined
}

test('the dashboard and the alerts use existing metrics and labels', async (context) => {
  const known = labelsByName(await listMetrics(context))
  expect(panels.length).toBeGreaterThan(20)
  expect(rules.length).toBeGreaterThan(6)
  const errors = queries
    .map(({ of, expr, named }) => [of, findError(expr, named, known)])
    .filter(([, message]) => message)
  expect(errors).toEqual([])
})

test('docs/operating.md names existing metrics and labels', async (context) => {
  const known = labelsByName(await listMetrics(context))
  const named = [...readFileSync('docs/operating.md', 'utf8').matchAll(/`(execution_service_\w+(?:\{[^}]*\})?)`/g)]
  const metrics = named.map(([, each = '']) => each)
  expect(metrics.length).toBeGreaterThan(1)
  expect(metrics.map((each) => [each, findError(each, [], known)]).filter(([, message]) => message)).toEqual([])
})

test('gauges of the whole installation are never summed over processes', async (context) => {
  const { queue } = await openMetrics(context)
  const registry = new Registry()
  queueMetrics(registry, queue)
  const gauges = registry.getMetricsAsArray().map(({ name }) => name)
  const used = queries.flatMap(({ of, expr }) =>
    gauges.filter((name) => expr.includes(name)).map((name) => [of, name, expr]),
  )
  expect(new Set(used.map(([, name]) => name)).size).toBe(gauges.length)
  // Sums over installations, which have a job each, are fine.
  const isReadOnce = (name = '', expr = '') =>
    new RegExp(`(?:^max(?: by \\([^)]*\\) )?|max by \\(job[^)]*\\) )\\(${name}\\b`).test(expr)
  expect(used.filter(([, name, expr]) => !isReadOnce(name, expr))).toEqual([])
})

test('counters start at 0, so that Prometheus sees the first increment', async (context) => {
  const { metrics, workflows } = await openMetrics(context)
  const before = await readCounters(metrics)
  const counters = (await listMetrics(context)).filter(({ name }) => ownCounter.test(name))
  expect(new Set(before.map(({ labels }) => labels.name))).toEqual(new Set(counters.map(({ name }) => name)))
  expect(before.filter(({ value }) => value !== 0)).toEqual([])
  const [workflowId = ''] = workflows.map(({ id }) => id)
  for (const outcome of outcomes) {
    const { status, reason } = nextState(outcome, {
      cancelRequested: false,
      failures: 0,
      losses: lossesMax - 1,
      retry: noRetry,
    })
    metrics.runs.finished({ workflowId, status: status as RunStatus, reason, seconds: 1 })
  }
  const after = await readCounters(metrics)
  expect(after.map(({ labels }) => labels)).toEqual(before.map(({ labels }) => labels))
  expect(after.filter(({ value }) => value === 1)).toHaveLength(outcomes.length)
})

test('every alert has a test in which it fires, and is explained in docs/observability.md', () => {
  const names = rules.map(({ alert }) => alert)
  const alertTests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[] = parse(
    readFileSync('deploy/prometheus/alerts.test.yaml', 'utf8'),
  ).tests
  const firing = alertTests.flatMap((each) => each.alert_rule_test).filter(({ exp_alerts }) => exp_alerts.length > 0)
  expect(new Set(firing.map(({ alertname }) => alertname))).toEqual(new Set(names))
  const explained = [...readFileSync('docs/observability.md', 'utf8').matchAll(/^\| `(ExecutionService\w+)` \|/gm)]
  expect(explained.map(([, name]) => name)).toEqual(names)
})

const promtool = (...args: string[]) => spawnSync('promtool', args, { cwd: 'deploy/prometheus', encoding: 'utf8' })

test.skipIf(promtool('--version').status !== 0)('Prometheus evaluates the alerts as their tests say', () => {
  const { status, stdout, stderr } = promtool('test', 'rules', 'alerts.test.yaml')
  expect({ status, failures: stderr }, stdout).toEqual({ status: 0, failures: '' })
})

test('the dashboard uses every metric of the service', async (context) => {
  const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n')
  const metrics = (await listMetrics(context)).filter(({ name }) => name.startsWith('execution_service_'))
  expect(metrics.map(({ name }) => name).filter((name) => !expressions.includes(name))).toEqual([])
})

test('docs/observability.md lists every metric with type, labels and meaning', async (context) => {
  const metrics = (await listMetrics(context)).filter(({ name }) => name.startsWith('execution_service_'))
  const rows = metrics.map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`
  })
  const table = ['| metric | type | labels | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
  const listed = readFileSync('docs/observability.md', 'utf8')
    .split(/<!-- \/?metrics -->/)[1]
    ?.trim()
  expect(listed).toBe(table)
})
