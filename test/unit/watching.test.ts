/** What is shipped to watch the service with, and what the guide says, is what the service exports. */
import { readFileSync } from 'node:fs'
import { expect, type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import { build } from '../../src/management/build.ts'
import { Metrics } from '../../src/management/metrics.ts'
import { Workers } from '../../src/runs/workers.ts'
import { openDomain } from '../support/store.ts'

interface Exported {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  labelNames: string[]
}

/** Every metric of a service and its worker, with Node's own. */
async function exported(test: TestContext): Promise<Exported[]> {
  const { store, workflows } = await openDomain(test)
  const metrics = new Metrics('service', store)
  metrics.ofAddress({
    ready: async () => {},
    session: store.read,
    workers: new Workers(store),
    workflows: () => workflows.list(),
    build,
  })
  metrics.ofSurfaces(() => ({ run: 0, account: 0 }))
  metrics.ofWorker()
  return metrics.registry.getMetricsAsArray() as unknown as Exported[]
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
  const shown = readFileSync('docs/watching.md', 'utf8')
    .split(/<!-- \/?metrics -->/)[1]
    ?.trim()
  expect(shown).toBe(table)
})
