/** Template of an attempt's steps: how many there are, and each as a bar. Steps that differ in a number are a group. */
import { elapsedSince, formatDuration } from '../format.ts'
import { attribute, type Html, html, nothing } from '../html.ts'
import type { Attempt, Step } from './run-attempts.ts'

type State = Step['state']

const stateTones = { running: 'busy', finished: 'good', failed: 'bad', reused: 'good', interrupted: 'waiting' }
const stateNotes = { running: '', finished: '', failed: 'failed', reused: 'reused', interrupted: 'interrupted' }

/** Fewer steps of one kind are shown one by one. */
const groupSizeMin = 5

/** In order; groups of consecutive steps such as `page 1`, `page 2` and `page 3`. */
export function groupSteps(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = []
  let kind: string | undefined
  for (const step of steps) {
    const last = groups.at(-1)
    const next = step.name.replace(/\d+/g, '#')
    if (last && next === kind && next !== step.name) last.push(step)
    else groups.push([step])
    kind = next
  }
  return groups.flatMap((group) => (group.length < groupSizeMin ? group.map((step) => [step]) : [group]))
}

/** For example `12 steps: 10 finished, 1 failed, 1 running`. */
export function countSteps(steps: readonly Step[]): string {
  const counts = (Object.keys(stateTones) as State[]).map((state): [State, number] => [
    state,
    steps.filter((step) => step.state === state).length,
  ])
  const parts = counts.filter(([, count]) => count > 0).map(([state, count]) => `${count} ${state}`)
  return `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}: ${parts.join(', ')}`
}

/** The list is scrolled to its end unless the attempt has succeeded: there is the step that runs or has failed. */
export function renderSteps(attempt: Attempt): Html {
  const { number, startedAt, endedAt, steps, next } = attempt
  const end = endedAt ?? Date.now()
  const title = `Steps of attempt ${number}`
  const tables: Html[] = []
  let rows: Step[] = []
  const addTable = () => {
    if (rows.length > 0) tables.push(renderTable(rows, title, startedAt, end))
    rows = []
  }
  for (const group of groupSteps(steps)) {
    if (group.length === 1) rows.push(...group)
    else {
      addTable()
      tables.push(renderGroup(group, number, startedAt, end))
    }
  }
  addTable()
  return html`<p class="muted">${countSteps(steps)}</p>
    <div class="steps ${next === 'succeeded' ? '' : 'to-end'}" tabindex="0" role="group" aria-label="${title}"><div>${tables}</div></div>`
}

function renderGroup(group: Step[], attempt: number, from: number, until: number): Html {
  const [first, last] = [group[0] as Step, group.at(-1) as Step]
  const isNotable = group.some(({ state }) => state === 'running' || state === 'failed')
  const title = `${first.name} … ${last.name.split(/(?<=\D)(?=\d)/).at(-1)}`
  const length = last.endedAt === null ? elapsedSince(first.startedAt) : formatDuration(last.endedAt - first.startedAt)
  return html`<details id="${`steps-${attempt}-${first.name.replaceAll(/[^\w-]/g, '_')}`}" ${attribute('open', isNotable)}>
    <summary>${title} <span class="muted">· ${countSteps(group)} · ${length}</span></summary>
    ${renderTable(group, title, from, until)}
  </details>`
}

function renderTable(steps: readonly Step[], title: string, from: number, until: number): Html {
  const rows = steps.map((step) => {
    const duration =
      step.endedAt === null ? html`for ${elapsedSince(step.startedAt)}` : formatDuration(step.endedAt - step.startedAt)
    const note = stateNotes[step.state]
    return html`<tr>
      <th scope="row">${step.name}</th>
      <td class="bar">${renderBar(step, from, until)}</td>
      <td class="number">+${formatDuration(step.startedAt - from)}</td>
      <td class="number">${duration}${note ? html` <span class="${step.state}">${note}</span>` : nothing}</td>
    </tr>`
  })
  return html`<table>
    <caption class="unseen">${title}</caption>
    <colgroup><col class="name" /><col /><col class="start" /><col class="duration" /></colgroup>
    <thead class="unseen"><tr><th scope="col">Step</th><td></td><th scope="col">Start</th><th scope="col">Duration</th></tr></thead>
    <tbody>${rows}</tbody>
  </table>`
}

/** Width of an attempt's bar, in SVG units. */
const width = 1000
const barWidthMin = 6

/** An SVG, because the Content-Security-Policy allows no `style` attributes. */
function renderBar({ state, startedAt, endedAt }: Step, from: number, until: number): Html {
  const span = Math.max(1, until - from)
  const position = (at: number) => Math.round((Math.min(Math.max(0, at - from), span) / span) * width)
  const x = Math.min(position(startedAt), width - barWidthMin)
  const length = Math.max(barWidthMin, position(endedAt ?? until) - x)
  return html`<svg viewBox="0 0 ${width} 10" preserveAspectRatio="none" aria-hidden="true">
    <rect width="${width}" height="10" /><rect class="${stateTones[state]}" x="${x}" width="${length}" height="10" />
  </svg>`
}
