/** Runs of the last 24 hours as a bar chart, and as a table for screen readers. */
import type { HourOfRuns, RunCounts } from '../../../domain/runs/run-statistics.ts'
import { type Html, html, nothing, table } from '../html.ts'

const height = 140
const pitch = 30
const barWidth = 22

export function groupOutcomes({ succeeded, failed, timedOut, queued, running, cancelled, expired }: RunCounts) {
  return { good: succeeded, bad: failed + timedOut, other: queued + running + cancelled + expired }
}

type Outcomes = ReturnType<typeof groupOutcomes>

const kinds = ['good', 'bad', 'other'] as const
const labels = { good: 'succeeded', bad: 'failed', other: 'other' }

export function renderRunChart(hours: HourOfRuns[]): Html {
  const now = hours.at(-1)?.startsAt ?? 0
  const bars = hours.map(({ counts, startsAt }) => ({
    outcomes: groupOutcomes(counts),
    ago: formatAgo(now - startsAt),
  }))
  const highest = Math.max(1, ...bars.map(({ outcomes }) => sum(outcomes)))
  const total = (kind: keyof Outcomes) => bars.reduce((result, { outcomes }) => result + outcomes[kind], 0)
  const totals = { good: total('good'), bad: total('bad'), other: total('other') }
  const summary = `Runs of the last 24 hours by the hour they were queued: ${describe(totals)}.`
  const rows = bars.map(({ outcomes, ago }) => [ago, ...kinds.map((kind) => String(outcomes[kind]))])
  return html`<figure class="card chart">
    <figcaption>
      <h2>Last 24 hours</h2>
      <ul class="legend">${kinds.map((kind) => html`<li class="${kind}">${labels[kind]}</li>`)}</ul>
    </figcaption>
    <svg viewBox="0 0 ${pitch * hours.length} ${height + 4}" role="img" aria-label="${summary}" preserveAspectRatio="none">
      ${bars.map(({ outcomes, ago }, index) => renderBar(outcomes, index, highest, ago))}
    </svg>
    <p class="axis" aria-hidden="true"><span>24 hours ago</span><span>peak: ${highest.toLocaleString('en')} per hour</span><span>now</span></p>
    <details>
      <summary>Show as table</summary>
      ${table(['Queued', 'Succeeded', 'Failed', 'Other'], rows, summary)}
    </details>
  </figure>`
}

function renderBar(outcomes: Outcomes, index: number, highest: number, ago: string): Html {
  const x = index * pitch + (pitch - barWidth) / 2
  let top = height + 2
  const segments = kinds.map((kind) => {
    if (outcomes[kind] === 0) return nothing
    // At least two units, so that one run is visible next to a thousand.
    const size = Math.max(2, (outcomes[kind] / highest) * (height - 6))
    top -= size
    return html`<rect class="${kind}" x="${x}" y="${top.toFixed(1)}" width="${barWidth}" height="${size.toFixed(1)}" rx="2" />`
  })
  const baseline = html`<rect class="base" x="${x}" y="${height + 2}" width="${barWidth}" height="2" />`
  return html`<g><title>${ago}: ${describe(outcomes)}</title>${baseline}${segments}</g>`
}

function formatAgo(milliseconds: number): string {
  const hours = Math.round(milliseconds / 3_600_000)
  return hours === 0 ? 'this hour' : hours === 1 ? '1 hour ago' : `${hours} hours ago`
}

function describe(outcomes: Outcomes): string {
  const present = kinds.filter((kind) => outcomes[kind] > 0)
  return present.map((kind) => `${outcomes[kind]} ${labels[kind]}`).join(', ') || 'none'
}

function sum({ good, bad, other }: Outcomes): number {
  return good + bad + other
}
