/** The diagram of a run's life, drawn from the document's transitions, so that it says the same as they do. */
import type { Transition } from './contracts.ts'

const box = { width: 118, height: 38 }
const columnGap = 132
const rowGap = 62
const margin = 14

interface Place {
  x: number
  y: number
}

/** States that lead on stand in a row, each in its column; final ones below each other at the right. */
export function runDiagram(transitions: readonly Transition[]): string {
  const going = [...new Set(transitions.map(({ from }) => from))]
  const final = [...new Set(transitions.map(({ to }) => to))].filter((state) => !going.includes(state))
  // Those that the last of the row leads to stand beside it; what earlier ones lead to is reached from below.
  const last = going.at(-1)
  final.sort((a, b) => reach(transitions, a, last) - reach(transitions, b, last))
  const places = new Map<string, Place>()
  for (const [index, state] of going.entries())
    places.set(state, { x: margin + index * (box.width + columnGap), y: margin + rowGap })
  for (const [index, state] of final.entries()) {
    places.set(state, { x: margin + going.length * (box.width + columnGap), y: margin + index * rowGap })
  }
  const width = 2 * margin + going.length * (box.width + columnGap) + box.width
  const height = 2 * margin + (final.length - 1) * rowGap + box.height
  const edges = transitions.map((transition, index) => edge(transition, index + 1, places, going))
  const boxes = [...places].map(([state, place]) => node(state, place, final.includes(state)))
  return `<figure class="diagram"><div class="wide" tabindex="0" role="group" aria-label="Diagram">
<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="life-title life-text">
<title id="life-title">The life cycle of a run</title>
<desc id="life-text">${transitions.map(({ from, to, when }) => `From ${from} to ${to}: ${plain(when)}.`).join(' ')}</desc>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>
${edges.map(({ line }) => line).join('\n')}
${boxes.join('\n')}
${edges.map(({ mark }) => mark).join('\n')}
</svg></div><figcaption>The numbers are those of the table.</figcaption></figure>`
}

/** Where a final state belongs: 0 when only `last` leads to it, 1 when others do too, 2 when only others do. */
function reach(transitions: readonly Transition[], state: string, last: string | undefined): number {
  const sources = transitions.filter(({ to }) => to === state).map(({ from }) => from)
  if (!last || !sources.includes(last)) return 2
  return sources.length > 1 ? 1 : 0
}

function node(state: string, { x, y }: Place, isFinal: boolean): string {
  const middle = `x="${x + box.width / 2}" y="${y + box.height / 2}"`
  return `<g class="${isFinal ? `state final ${state}` : `state ${state}`}"><rect x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="9"/><text ${middle}>${state}</text></g>`
}

function edge({ from, to }: Transition, number: number, places: ReadonlyMap<string, Place>, going: readonly string[]) {
  const [start, end] = [places.get(from), places.get(to)]
  if (!start || !end) throw new Error(`The diagram has no place for ${from} → ${to}.`)
  const points = route(start, end, going.includes(to), going.at(-1) === from)
  const [a, b, c, d] = points
  const { x, y } = middleOf(points)
  const line = `<path class="edge" d="M${a.x} ${a.y}C${b.x} ${b.y} ${c.x} ${c.y} ${d.x} ${d.y}" marker-end="url(#tip)"/>`
  const mark = `<g class="mark"><circle cx="${x}" cy="${y}" r="10"/><text x="${x}" y="${y}">${number}</text></g>`
  return { line, mark }
}

type Curve = [Place, Place, Place, Place]

/** A cubic curve: along the row above for the way on and below for the way back, else to the left side of its goal. */
function route(start: Place, end: Place, isAlongRow: boolean, isBeside: boolean): Curve {
  const middle = box.height / 2
  if (isAlongRow) {
    const isOn = start.x < end.x
    const [from, to] = isOn ? [start.x + box.width, end.x] : [start.x, end.x + box.width]
    const offset = isOn ? -7 : 7
    const bend = (to - from) / 3
    const at = (x: number, dy: number) => ({ x, y: start.y + middle + offset + dy })
    return [at(from, 0), at(from + bend, 2 * offset), at(to - bend, 2 * offset), at(to, 0)]
  }
  const goal = { x: end.x, y: end.y + middle }
  if (isBeside) {
    const from = { x: start.x + box.width, y: start.y + middle }
    const bend = (goal.x - from.x) / 2
    return [from, { x: from.x + bend, y: from.y }, { x: goal.x - bend, y: goal.y }, goal]
  }
  const from = { x: start.x + box.width / 2, y: start.y + box.height }
  return [from, { x: from.x, y: goal.y }, { x: from.x + 40, y: goal.y }, goal]
}

function middleOf([a, b, c, d]: Curve): Place {
  const at = (axis: 'x' | 'y') => Math.round((a[axis] + 3 * b[axis] + 3 * c[axis] + d[axis]) / 8)
  return { x: at('x'), y: at('y') }
}

function plain(text: string): string {
  return text.replaceAll('`', '').replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
