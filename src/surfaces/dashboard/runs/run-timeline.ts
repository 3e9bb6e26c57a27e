/** Template of a run's timeline: its attempts with their errors and steps. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { elapsedSince, formatDuration, time } from '../format.ts'
import { badge, type Html, html, nothing, type Tone } from '../html.ts'
import type { Attempt } from './run-attempts.ts'
import { reasonLabels } from './run-labels.ts'
import { renderSteps } from './run-steps.ts'

export function renderTimeline(run: Run, attempts: Attempt[], stepsOmitted: number): Html {
  const { createdAt, finishedAt, status } = run
  const items = attempts.map((attempt) => {
    // The page begins with the error of a failed run.
    const isShownAbove = isFinal(status) && status !== 'cancelled' && attempt.number === run.attempts
    return renderAttempt(attempt, attempts.length > 1 || attempt.endedAt === null, isShownAbove)
  })
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

function renderAttempt(attempt: Attempt, showReason: boolean, isErrorShownAbove: boolean): Html {
  const { number, startedAt, endedAt, reason, steps } = attempt
  const duration =
    endedAt === null ? html`for ${elapsedSince(startedAt)}` : html`after ${formatDuration(endedAt - startedAt)}`
  return html`<li id="attempt-${number}">
    <h3>Attempt ${number} ${badge(...outcomeBadge(attempt))} <small>${time(startedAt, 'exact')}, ${duration}</small></h3>
    ${showReason && reason !== null ? html`<p class="muted">${reasonLabels[reason]}</p>` : nothing}
    ${renderError(attempt, isErrorShownAbove)} ${steps.length === 0 ? nothing : renderSteps(attempt)}
  </li>`
}

function renderError({ number, error }: Attempt, isShownAbove: boolean): Html | '' {
  if (!error) return nothing
  const { name, message, stack, step } = error
  return html`${isShownAbove ? nothing : html`<p class="error-message"><strong>${name}</strong> ${message}</p>`}
    ${step === null ? nothing : html`<p>In step <strong>${step}</strong></p>`}
    ${
      stack === null
        ? nothing
        : html`<details id="stack-${number}" class="error-stack" open>
      <summary>Stack</summary>
      <pre tabindex="0" aria-label="Stack of attempt ${number}"><code>${stack}</code></pre>
    </details>`
    }`
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
