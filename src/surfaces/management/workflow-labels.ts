/**
 * Which workflows have a label of their own in the metrics of a process. Accounts may deploy any number of workflows, and
 * each has some 200 series, so that the others share one label.
 */
import type { Counter, Histogram } from 'prom-client'
import type { QueueDepth } from '../../domain/statistics/queue-depth.ts'

/** The label of all further workflows. No workflow has this id. */
export const otherWorkflows = '(other)'

/** Workflows with labels of their own. */
export const labelledMax = 100

/** A workflow that was used within this time keeps its label. */
const recentMilliseconds = 3_600_000

interface Labelled {
  usedAt: number
  /** Remove its series, by metric and labels. */
  series: Map<string, () => void>
}

export class WorkflowLabels {
  readonly #now: () => number
  /** By workflow, the least recently used first. */
  readonly #labelled = new Map<string, Labelled>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Takes the labels of workflows that are not deployed. Returns the labels of those that are. */
  deployed(ids: readonly string[]): string[] {
    const current = new Set(ids)
    for (const id of this.#labelled.keys()) if (!current.has(id)) this.#forget(id)
    for (const id of current) {
      if (this.#labelled.size >= labelledMax) break
      if (!this.#labelled.has(id)) this.#labelled.set(id, { usedAt: Number.NEGATIVE_INFINITY, series: new Map() })
    }
    return [...this.#labelled.keys(), ...(current.size > labelledMax ? [otherWorkflows] : [])]
  }

  /** The labels of a value of the workflow, whose series ends with its label. */
  of<Label extends string>(
    metric: Counter<Label> | Histogram<Label>,
    id: string,
    others: Record<Exclude<Label, 'workflow'>, string>,
  ): Record<Label, string> {
    return this.keep(metric, this.#use(id), others)
  }

  /** The same for a label that the workflow has. */
  keep<Label extends string>(
    metric: Counter<Label> | Histogram<Label>,
    workflow: string,
    others: Record<Exclude<Label, 'workflow'>, string>,
  ): Record<Label, string> {
    const labels = { workflow, ...others } as Record<Label, string>
    this.#labelled
      .get(workflow)
      ?.series.set(`${seriesName(metric)} ${Object.values(others)}`, () => metric.remove(labels))
    return labels
  }

  #use(id: string): string {
    const now = this.#now()
    const known = this.#labelled.get(id)
    if (!known && this.#labelled.size >= labelledMax) {
      const [[oldest, { usedAt }]] = this.#labelled as unknown as [[string, Labelled]]
      if (usedAt > now - recentMilliseconds) return otherWorkflows
      this.#forget(oldest)
    }
    this.#labelled.delete(id)
    this.#labelled.set(id, { usedAt: now, series: known?.series ?? new Map() })
    return id
  }

  #forget(id: string): void {
    for (const remove of this.#labelled.get(id)?.series.values() ?? []) remove()
    this.#labelled.delete(id)
  }
}

function seriesName(metric: object): string {
  return (metric as { name: string }).name
}

/**
 * The workflows whose runs in the queue have separate labels: those with the most runs, then deployed ones. The same in
 * every process, since each exports these gauges.
 */
export function labelledInQueue({ waiting, running }: QueueDepth, deployed: readonly string[]): Set<string> {
  const counts = new Map<string, number>()
  for (const { workflowId, count } of [...waiting, ...running])
    counts.set(workflowId, (counts.get(workflowId) ?? 0) + count)
  const most = [...counts].sort(([a, of], [b, others]) => others - of || (a < b ? -1 : 1)).map(([id]) => id)
  return new Set([...new Set([...most, ...deployed.toSorted()])].slice(0, labelledMax))
}
