/** The frame of bar charts: their measures, scale and axis. */
import { type Html, html } from '../html.ts'

/** In units of the view box. */
export const height = 140
export const pitch = 30
export const barWidth = 22

/** @param top what the scale ends with; `bars` are as high as their share of it. */
export function renderPlot(top: number, bars: Html[], axis: (Html | string)[]): Html {
  const width = pitch * bars.length
  return html`<div class="plot" aria-hidden="true">
      <p class="scale"><span>${top.toLocaleString('en')}</span><span>${(top / 2).toLocaleString('en')}</span><span>0</span></p>
      <svg viewBox="0 0 ${width} ${height + 4}" preserveAspectRatio="none">
        ${[0, 0.5, 1].map((share) => renderLine(share, width))}
        ${bars}
      </svg>
      <p class="axis">${axis}</p>
    </div>`
}

export function renderLine(share: number, width: number): Html {
  return html`<rect class="base" x="0" y="${height + 2 - share * (height - 6)}" width="${width}" height="1" />`
}

/** To a round number at most a third higher, and even, since half of it is on the axis. */
export function roundUp(count: number): number {
  const power = 10 ** Math.floor(Math.log10(count))
  const round = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 20].map((each) => Math.round(each * power))
  return round.find((each) => each >= count && each % 2 === 0) ?? count
}
