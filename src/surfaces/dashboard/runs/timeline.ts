/** A run's attempts one below the other, and the steps of each as bars along its time. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { badge, moment, type Tone } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { Attempt, Step } from './attempts.ts'
import { durationWords, elapsedSince, reasonWords } from './run-labels.ts'

/** How long a bar may be, in units of the drawing. */
const width = 1000

export function timeLine(run: Run, attempts: Attempt[], omitted: number): Html {
  const lines = attempts.map((attempt) => attemptPart(attempt, attempts.length > 1 || attempt.endedAt === null))
  const ended =
    run.finishedAt !== null &&
    html`<li class="point">${isFinal(run.status) ? 'Finished' : nothing} ${moment(run.finishedAt, 'exact')}</li>`
  return html`<section class="card">
    <h2>Time line</h2>
    ${omitted > 0 ? html`<p class="muted">The ${omitted} oldest steps are not shown.</p>` : nothing}
    <ol class="time-line">
      <li class="point">Queued ${moment(run.createdAt, 'exact')}</li>
      ${lines} ${ended || nothing}
    </ol>
  </section>`
}

function attemptPart(attempt: Attempt, withReason: boolean): Html {
  const { number, startedAt, endedAt, reason, steps } = attempt
  const { tone, word } = endOf(attempt)
  const took =
    endedAt === null ? html`for ${elapsedSince(startedAt)}` : html`after ${durationWords(endedAt - startedAt)}`
  return html`<li class="attempt">
    <h3>Attempt ${number} ${badge(tone, word)} <small>${moment(startedAt, 'exact')}, ${took}</small></h3>
    ${withReason && reason !== null ? html`<p class="muted">${reasonWords[reason]}</p>` : nothing}
    ${steps.length === 0 ? nothing : stepsPart(attempt)}
  </li>`
}

function endOf({ endedAt, next, reason }: Attempt): { tone: Tone; word: string } {
  if (endedAt === null) return { tone: 'busy', word: 'running' }
  if (next === 'succeeded') return { tone: 'good', word: 'succeeded' }
  if (next === 'timedOut') return { tone: 'bad', word: 'timed out' }
  if (next === 'cancelled') return { tone: 'quiet', word: 'cancelled' }
  if (reason === 'workerStopped') return { tone: 'quiet', word: 'handed back' }
  if (reason === 'workerLost') return { tone: 'warning', word: 'lost' }
  return { tone: 'bad', word: 'failed' }
}

function stepsPart({ number, startedAt, endedAt, steps }: Attempt): Html {
  const end = endedAt ?? Date.now()
  const rows = steps.map((step) => {
    const from = step.startedAt - startedAt
    const took =
      step.endedAt === null ? html`for ${elapsedSince(step.startedAt)}` : durationWords(step.endedAt - step.startedAt)
    return html`<tr>
      <th scope="row">${step.name}</th>
      <td class="bar">${bar(step, startedAt, end)}</td>
      <td class="number">+${durationWords(from)}</td>
      <td class="number">${took}${stateWord(step)}</td>
    </tr>`
  })
  return html`<div class="steps" tabindex="0" role="group" aria-label="Steps of attempt ${number}"><table>
    <caption class="unseen">Steps of attempt ${number}</caption>
    <thead class="unseen"><tr><th scope="col">Step</th><td></td><th scope="col">Begins</th><th scope="col">Takes</th></tr></thead>
    <tbody>${rows}</tbody>
  </table></div>`
}

function stateWord({ state }: Step): Html | '' {
  if (state === 'finished' || state === 'running') return nothing
  const words = { failed: 'failed', reused: 'done before', interrupted: 'interrupted' }
  return html` <span class="${state}">${words[state]}</span>`
}

/** Drawn with attributes: the page's policy permits no styles of its own. */
function bar({ state, startedAt, endedAt }: Step, from: number, until: number): Html {
  const span = Math.max(1, until - from)
  const place = (at: number) => Math.round((Math.min(Math.max(0, at - from), span) / span) * width)
  const x = Math.min(place(startedAt), width - 6)
  const length = Math.max(6, place(endedAt ?? until) - x)
  return html`<svg viewBox="0 0 ${width} 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="ground" width="${width}" height="10" /><rect class="${state}" x="${x}" width="${length}" height="10" />
  </svg>`
}
