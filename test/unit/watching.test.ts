/** What is shipped to watch the service with, and what the guide says, is what the service exports. */
import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { expect, type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import {
  type FailureReason,
  lossesMax,
  nextState,
  noRetry,
  type Outcome,
  type RunStatus,
} from '../../src/domain/runs/run-state.ts'
import { Workers } from '../../src/domain/runs/workers.ts'
import { build } from '../../src/surfaces/management/build.ts'
import { Metrics } from '../../src/surfaces/management/metrics.ts'
import { queueMetrics } from '../../src/surfaces/management/queue-metrics.ts'
import { openDomain } from '../support/domain.ts'

/** A service and its worker in one process, that nothing has happened in yet. */
async function measuring(test: TestContext) {
  const { store, workflows: of } = await openDomain(test)
  const workflows = of.list()
  const queue = { tx: store.read, workers: new Workers(store), workflows: () => workflows }
  const metrics = new Metrics('service', store)
  metrics.registerInstallationMetrics({ ready: async () => {}, build, ...queue })
  metrics.registerRequestMetrics(() => ({ run: 0, account: 0 })).admit('execution', async () => undefined)
  metrics.registerAttemptMetrics()
  metrics.initializeWorkflows(workflows)
  return { metrics, queue, workflows }
}

interface Exported {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  labelNames: string[]
}

/** Every metric of a service and its worker, with Node's own. */
async function exported(test: TestContext): Promise<Exported[]> {
  const { metrics } = await measuring(test)
  return metrics.registry.getMetricsAsArray() as unknown as Exported[]
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

/** What the service's own counters tell. */
async function counted({ registry }: Metrics) {
  const metrics = await registry.getMetricsAsJSON()
  return metrics
    .filter(({ name }) => ownCounter.test(name))
    .flatMap(({ name, values }) => values.map(({ labels, value }) => ({ labels: { name, ...labels }, value })))
}

/** The names that a metric has in queries, each with its labels; Prometheus adds where it has read them. */
function queried(metrics: readonly Exported[]): Map<string, Set<string>> {
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

/** Queries with the labels that the text beside them names. */
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

/** Of PostgreSQL, whose names begin as those of the metrics do. */
const isSchema = /^execution_service_jobs$/

const metricPattern = /\b((?:execution_service|process|nodejs)_\w+)(?:\{([^}]*)\})?/g

/** What is wrong with a query, if anything. */
function faultOf(expr: string, named: RegExpMatchArray[], known: Map<string, Set<string>>): string | undefined {
  const found = [...expr.replaceAll(/\bby \([^)]*\)/g, '').matchAll(metricPattern)]
  if (found.length === 0) return 'it asks for no metric'
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/,\s*/))
  for (const [, name = '', matchers = ''] of found) {
    const labels = known.get(name)
    if (!labels) return `there is no metric ${name}`
    const matched = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)]
    const used = [...grouped, ...[...matched, ...named].map(([, label = '']) => label)]
    const unknown = used.find((label) => !labels.has(label))
    // A label that one metric of a query has need not be on all.
    if (unknown && !found.some(([, other = '']) => known.get(other)?.has(unknown)))
      return `${name} has no label ${unknown}`
  }
  return undefined
}

test('the dashboard and the alerts ask for metrics and labels that the service exports', async (context) => {
  const known = queried(await exported(context))
  expect(panels.length).toBeGreaterThan(20)
  expect(rules.length).toBeGreaterThan(6)
  const faults = queries.map(({ of, expr, named }) => [of, faultOf(expr, named, known)]).filter(([, fault]) => fault)
  expect(faults).toEqual([])
})

test('the guide to operating names metrics and labels that the service exports', async (context) => {
  const known = queried(await exported(context))
  const named = [...readFileSync('docs/operating.md', 'utf8').matchAll(/`(execution_service_\w+(?:\{[^}]*\})?)`/g)]
  const metrics = named.map(([, each = '']) => each).filter((each) => !isSchema.test(each))
  expect(metrics.length).toBeGreaterThan(1)
  expect(metrics.map((each) => [each, faultOf(each, [], known)]).filter(([, fault]) => fault)).toEqual([])
})

test('what every process tells of the whole installation is never added up over its processes', async (context) => {
  const { queue } = await measuring(context)
  const registry = new Registry()
  queueMetrics(registry, queue)
  const gauges = registry.getMetricsAsArray().map(({ name }) => name)
  const used = queries.flatMap(({ of, expr }) =>
    gauges.filter((name) => expr.includes(name)).map((name) => [of, name, expr]),
  )
  expect(new Set(used.map(([, name]) => name)).size).toBe(gauges.length)
  // Installations have a job each, and may be added up.
  const isTakenOnce = (name = '', expr = '') =>
    new RegExp(`(?:^max(?: by \\([^)]*\\) )?|max by \\(job[^)]*\\) )\\(${name}\\b`).test(expr)
  expect(used.filter(([, name, expr]) => !isTakenOnce(name, expr))).toEqual([])
})

test('counters begin at 0, so that Prometheus sees the first that they count', async (context) => {
  const { metrics, workflows } = await measuring(context)
  const before = await counted(metrics)
  const counters = (await exported(context)).filter(({ name }) => ownCounter.test(name))
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
  const after = await counted(metrics)
  expect(after.map(({ labels }) => labels)).toEqual(before.map(({ labels }) => labels))
  expect(after.filter(({ value }) => value === 1)).toHaveLength(outcomes.length)
})

test('every alert is shown to fire, and the guide says what to look at', () => {
  const names = rules.map(({ alert }) => alert)
  const shown: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[] = parse(
    readFileSync('deploy/prometheus/alerts.test.yaml', 'utf8'),
  ).tests
  const firing = shown.flatMap((each) => each.alert_rule_test).filter(({ exp_alerts }) => exp_alerts.length > 0)
  expect(new Set(firing.map(({ alertname }) => alertname))).toEqual(new Set(names))
  const explained = [...readFileSync('docs/observability.md', 'utf8').matchAll(/^\| `(ExecutionService\w+)` \|/gm)]
  expect(explained.map(([, name]) => name)).toEqual(names)
})

test('the dashboard shows every metric of the service', async (context) => {
  const asked = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n')
  const own = (await exported(context)).filter(({ name }) => name.startsWith('execution_service_'))
  expect(own.map(({ name }) => name).filter((name) => !asked.includes(name))).toEqual([])
})

test('the guide lists every metric of the service with its type, labels and meaning', async (context) => {
  const own = (await exported(context)).filter(({ name }) => name.startsWith('execution_service_'))
  const rows = own.map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`
  })
  const table = ['| metric | type | labels | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
  const shown = readFileSync('docs/observability.md', 'utf8')
    .split(/<!-- \/?metrics -->/)[1]
    ?.trim()
  expect(shown).toBe(table)
})
