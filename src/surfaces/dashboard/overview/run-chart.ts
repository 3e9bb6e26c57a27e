/** Bar charts of finished runs: a large one whose bars lead to the list, also as a table, and small ones for tables. */
import { type OutcomeCounts, outcomes } from '../../../domain/statistics/run-rollups.ts'
import { sumCounts, type TimeBucket } from '../../../domain/statistics/run-statistics.ts'
import { formatLocalTime, recentTime } from '../format.ts'
import { type Html, html, nothing, table } from '../html.ts'
import { toRunQuery } from '../runs/run-filter.ts'

const height = 140
const pitch = 30
const barWidth = 22
const axisLabels = 4
const barsPerTwoDays = 8

export function groupOutcomes({ succeeded, failed, timedOut, cancelled, expired }: OutcomeCounts) {
  return { good: succeeded, bad: failed + timedOut, other: cancelled + expired }
}

type Outcomes = ReturnType<typeof groupOutcomes>

const kinds = ['good', 'bad', 'other'] as const
const labels = { good: 'succeeded', bad: 'failed', other: 'cancelled or expired' }

/** The list's filter for runs that were queued within the bucket. */
export function bucketFilter({ startsAt, endsAt }: Pick<TimeBucket, 'startsAt' | 'endsAt'>) {
  return { from: formatLocalTime(startsAt, 'UTC'), until: formatLocalTime(endsAt, 'UTC'), zone: 'UTC' }
}

export function renderRunChart(buckets: TimeBucket[], title: string): Html {
  const bars = buckets.map((bucket) => ({
    outcomes: groupOutcomes(bucket.counts),
    path: `/runs?${toRunQuery({ ...bucketFilter(bucket), statuses: [...outcomes] })}`,
    startsAt: bucket.startsAt,
  }))
  const top = roundUp(Math.max(1, ...buckets.map(({ counts }) => sumCounts(counts))))
  const total = (kind: keyof Outcomes) => bars.reduce((sum, { outcomes: each }) => sum + each[kind], 0)
  const summary = `Finished runs by when they were queued: ${describe({ good: total('good'), bad: total('bad'), other: total('other') })}.`
  const style = (buckets.at(1)?.startsAt ?? 0) - (buckets.at(0)?.startsAt ?? 0) > 3_600_000 ? 'day' : 'time'
  const rows = bars.map(({ outcomes: each, path, startsAt }) => [
    html`<a href="${path}">${recentTime(startsAt, style === 'day' ? 'both' : 'time')}</a>`,
    ...kinds.map((kind) => String(each[kind])),
  ])
  const step = style === 'day' ? barsPerTwoDays : Math.ceil(bars.length / axisLabels)
  const cells = bars.map(({ startsAt }, index) => {
    if (index === bars.length - 1) return html`<span>now</span>`
    // A label too close to "now" would overlap it.
    return index % step === 0 && index < bars.length - step / 2 ? recentTime(startsAt, style) : html`<span></span>`
  })
  return html`<figure class="card chart">
    <figcaption>
      <h2>${title}</h2>
      <ul class="legend">${kinds.map((kind) => html`<li class="${kind}">${labels[kind]}</li>`)}</ul>
    </figcaption>
    <div class="plot" aria-hidden="true">
      <p class="scale"><span>${top.toLocaleString('en')}</span><span>${(top / 2).toLocaleString('en')}</span><span>0</span></p>
      <svg viewBox="0 0 ${pitch * bars.length} ${height + 4}" preserveAspectRatio="none">
        ${[0, 0.5, 1].map((share) => renderLine(share, pitch * bars.length))}
        ${bars.map((bar, index) => renderBar(bar, index, top))}
      </svg>
      <p class="axis">${cells}</p>
    </div>
    <details>
      <summary>Show as table</summary>
      ${table(['Queued from', ...['Succeeded', 'Failed', 'Cancelled or expired'].map((number) => ({ number }))], rows, summary)}
    </details>
  </figure>`
}

function renderLine(share: number, width: number): Html {
  return html`<rect class="base" x="0" y="${height + 2 - share * (height - 6)}" width="${width}" height="1" />`
}

/** The table has the same links for keyboards and screen readers. */
function renderBar(bar: { outcomes: Outcomes; path: string; startsAt: number }, index: number, top: number): Html {
  const x = index * pitch + (pitch - barWidth) / 2
  const title = `${new Date(bar.startsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC: ${describe(bar.outcomes)}`
  const target = html`<rect class="target" x="${index * pitch}" y="0" width="${pitch}" height="${height + 4}" />`
  return html`<a href="${bar.path}" tabindex="-1"><title>${title}</title>${target}${renderSegments(bar.outcomes, x, top)}</a>`
}

function renderSegments(counted: Outcomes, x: number, top: number): (Html | string)[] {
  let y = height + 2
  return kinds.map((kind) => {
    if (counted[kind] === 0) return nothing
    // At least two units, so that one run is visible next to a thousand.
    const size = Math.max(2, (counted[kind] / top) * (height - 6))
    y -= size
    return html`<rect class="${kind}" x="${x}" y="${y.toFixed(1)}" width="${barWidth}" height="${size.toFixed(1)}" rx="2" />`
  })
}

/** For a table's cell, which says the same in numbers. */
export function renderSparkline(history: OutcomeCounts[]): Html {
  const top = Math.max(1, ...history.map(sumCounts))
  const bars = history.map((counts, index) =>
    renderSegments(groupOutcomes(counts), index * pitch + (pitch - barWidth) / 2, top),
  )
  return html`<svg class="sparkline" viewBox="0 0 ${pitch * history.length} ${height + 4}" preserveAspectRatio="none"
    aria-hidden="true">${renderLine(0, pitch * history.length)}${bars}</svg>`
}

/** To a round number at most a third higher, and even, since half of it is on the axis. */
function roundUp(count: number): number {
  const power = 10 ** Math.floor(Math.log10(count))
  const round = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 20].map((each) => Math.round(each * power))
  return round.find((each) => each >= count && each % 2 === 0) ?? count
}

function describe(counted: Outcomes): string {
  const present = kinds.filter((kind) => counted[kind] > 0)
  return present.map((kind) => `${counted[kind].toLocaleString('en')} ${labels[kind]}`).join(', ') || 'none'
}
