/** Template of a run's timeline: its attempts, and their steps as bars. */
import type { Run } from '../../../domain/runs/run.ts'
import { elapsedSince, formatDuration, time } from '../format.ts'
import { badge, type Html, html, nothing, type Tone } from '../html.ts'
import type { Attempt, Step } from './run-attempts.ts'
import { reasonLabels } from './run-labels.ts'

export function renderTimeline({ createdAt, finishedAt }: Run, attempts: Attempt[], stepsOmitted: number): Html {
  const items = attempts.map((attempt) => renderAttempt(attempt, attempts.length > 1 || attempt.endedAt === null))
  const finished = finishedAt !== null && html`<li class="muted">Finished ${time(finishedAt, 'exact')}</li>`
  return html`<section class="card">
    <h2>Timeline</h2>
    ${stepsOmitted > 0 ? html`<p class="muted">The ${stepsOmitted} oldest steps are not shown.</p>` : nothing}
    <ol class="timeline">
      <li class="muted">Queued ${time(createdAt, 'exact')}</li>
      ${items} ${finished || nothing}
    </ol>
  </section>`
}

function renderAttempt(attempt: Attempt, showReason: boolean): Html {
  const { number, startedAt, endedAt, reason, steps } = attempt
  const duration =
    endedAt === null ? html`for ${elapsedSince(startedAt)}` : html`after ${formatDuration(endedAt - startedAt)}`
  return html`<li>
    <h3>Attempt ${number} ${badge(...outcomeBadge(attempt))} <small>${time(startedAt, 'exact')}, ${duration}</small></h3>
    ${showReason && reason !== null ? html`<p class="muted">${reasonLabels[reason]}</p>` : nothing}
    ${steps.length === 0 ? nothing : renderSteps(attempt)}
  </li>`
}

function outcomeBadge({ endedAt, next, reason }: Attempt): [tone: Tone, label: string] {
  if (endedAt === null) return ['busy', 'Running']
  if (next === 'succeeded') return ['good', 'Succeeded']
  if (next === 'timedOut') return ['bad', 'Timed out']
  if (next === 'cancelled') return ['quiet', 'Cancelled']
  if (reason === 'workerStopped') return ['quiet', 'Requeued']
  if (reason === 'workerLost') return ['warning', 'Worker lost']
  return ['bad', 'Failed']
}

const stateTones = { running: 'busy', finished: 'good', failed: 'bad', reused: 'good', interrupted: 'waiting' }
const stateNotes = { running: '', finished: '', failed: 'failed', reused: 'reused', interrupted: 'interrupted' }

function renderSteps({ number, startedAt, endedAt, steps }: Attempt): Html {
  const end = endedAt ?? Date.now()
  const rows = steps.map((step) => {
    const duration =
      step.endedAt === null ? html`for ${elapsedSince(step.startedAt)}` : formatDuration(step.endedAt - step.startedAt)
    const note = stateNotes[step.state]
    return html`<tr>
      <th scope="row">${step.name}</th>
      <td class="bar">${renderBar(step, startedAt, end)}</td>
      <td class="number">+${formatDuration(step.startedAt - startedAt)}</td>
      <td class="number">${duration}${note ? html` <span class="${step.state}">${note}</span>` : nothing}</td>
    </tr>`
  })
  return html`<div class="steps" tabindex="0" role="group" aria-label="Steps of attempt ${number}"><table>
    <caption class="unseen">Steps of attempt ${number}</caption>
    <thead class="unseen"><tr><th scope="col">Step</th><td></td><th scope="col">Start</th><th scope="col">Duration</th></tr></thead>
    <tbody>${rows}</tbody>
  </table></div>`
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
