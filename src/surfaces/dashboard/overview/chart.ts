/** The runs of the last day as a chart of bars, and as a table for those who do not see it. */
import type { HourOfRuns, RunCounts } from '../../../domain/runs/run-statistics.ts'
import { table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'

const height = 140
const pitch = 30
const barWidth = 22

/** What a bar tells apart. */
export function shares({ succeeded, failed, timedOut, queued, running, cancelled, expired }: RunCounts) {
  return { good: succeeded, bad: failed + timedOut, other: queued + running + cancelled + expired }
}

type Shares = ReturnType<typeof shares>

const words: Record<keyof Shares, string> = { good: 'succeeded', bad: 'failed', other: 'other' }

export function chart(hours: HourOfRuns[]): Html {
  const bars = hours.map(({ counts }) => shares(counts))
  const highest = Math.max(1, ...bars.map(total))
  const summary = `Runs of the last 24 hours by the hour in which they were queued: ${inWords(sum(bars))}.`
  const rows = hours.map(({ startsAt }, index) => {
    const bar = bars[index] as Shares
    return [agoOf(hours, startsAt), String(bar.good), String(bar.bad), String(bar.other)]
  })
  return html`<figure class="card chart">
    <figcaption>
      <h2>Last 24 hours</h2>
      <ul class="legend">${(Object.keys(words) as (keyof Shares)[]).map((kind) => html`<li class="${kind}">${words[kind]}</li>`)}</ul>
    </figcaption>
    <svg viewBox="0 0 ${pitch * hours.length} ${height + 4}" role="img" aria-label="${summary}" preserveAspectRatio="none">
      ${hours.map(({ startsAt }, index) => column(bars[index] as Shares, index, highest, agoOf(hours, startsAt)))}
    </svg>
    <p class="axis" aria-hidden="true"><span>24 hours ago</span><span>at most ${highest.toLocaleString('en')} an hour</span><span>now</span></p>
    <details>
      <summary>As a table</summary>
      ${table(['Queued', 'Succeeded', 'Failed', 'Other'], rows, summary)}
    </details>
  </figure>`
}

function column(bar: Shares, index: number, highest: number, ago: string): Html {
  const x = index * pitch + (pitch - barWidth) / 2
  let top = height + 2
  const parts = (['good', 'bad', 'other'] as const).map((kind) => {
    if (bar[kind] === 0) return nothing
    // A single run is seen beside a thousand.
    const size = Math.max(2, (bar[kind] / highest) * (height - 6))
    top -= size
    return html`<rect class="${kind}" x="${x}" y="${top.toFixed(1)}" width="${barWidth}" height="${size.toFixed(1)}" rx="2" />`
  })
  const ground = html`<rect class="ground" x="${x}" y="${height + 2}" width="${barWidth}" height="2" />`
  return html`<g><title>${ago}: ${inWords(bar)}</title>${ground}${parts}</g>`
}

function agoOf(hours: HourOfRuns[], startsAt: number): string {
  const present = hours.at(-1)?.startsAt ?? startsAt
  const ago = Math.round((present - startsAt) / 3_600_000)
  return ago === 0 ? 'this hour' : ago === 1 ? 'an hour ago' : `${ago} hours ago`
}

function inWords(bar: Shares): string {
  if (total(bar) === 0) return 'none'
  const kinds = Object.keys(words) as (keyof Shares)[]
  return kinds
    .filter((kind) => bar[kind] > 0)
    .map((kind) => `${bar[kind]} ${words[kind]}`)
    .join(', ')
}

function total({ good, bad, other }: Shares): number {
  return good + bad + other
}

function sum(bars: Shares[]): Shares {
  const add = (kind: keyof Shares) => bars.reduce((result, bar) => result + bar[kind], 0)
  return { good: add('good'), bad: add('bad'), other: add('other') }
}
