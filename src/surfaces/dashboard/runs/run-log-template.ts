/** Template of a run's log. Each line shows the seconds since the run started. */
import type { Run, RunEvent } from '../../../domain/runs/run.ts'
import type { History } from '../../../domain/runs/run-history.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { formatBytes } from '../format.ts'
import { copyable, type Html, html, nothing } from '../html.ts'
import { eventsCommand } from '../workflows/curl-commands.ts'

export function renderLog(run: Run, { events, logsOmitted }: History, executionUrl: string): Html {
  const lines = events.filter(({ type }) => type === 'log' || type === 'artifact')
  const empty = isFinal(run.status) ? 'No log messages.' : 'No log messages yet.'
  const omitted = `${logsOmitted.toLocaleString('en')} earlier ${logsOmitted === 1 ? 'line is' : 'lines are'} not shown.`
  return html`<section class="card">
    <h2>Log</h2>
    ${logsOmitted > 0 ? html`<p class="muted">${omitted}</p>` : nothing}
    ${lines.length === 0 ? html`<p class="muted">${empty}</p>` : renderLines(run, lines)}
    <details>
      <summary>Follow all events with curl</summary>
      ${copyable('events-command', eventsCommand(executionUrl, run.id), { label: 'Copy command' })}
    </details>
  </section>`
}

function renderLines(run: Run, events: RunEvent[]): Html {
  const start = run.startedAt ?? run.createdAt
  let attempt: unknown
  const lines = events.map(({ type, at, data }) => {
    const isNewAttempt = run.attempts > 1 && data.attempt !== attempt
    attempt = data.attempt
    const level = type === 'artifact' ? 'info' : String(data.level)
    const text =
      type === 'artifact'
        ? html`Created artifact ${String(data.name)}, ${formatBytes(Number(data.sizeBytes))}`
        : String(data.message)
    return html`${isNewAttempt ? html`<li class="divider">Attempt ${Number(data.attempt)}</li>` : nothing}<li class="${level}">
      <time datetime="${new Date(at).toISOString()}">+${(Math.max(0, at - start) / 1000).toFixed(3)}</time>
      ${level === 'info' ? nothing : html`<strong>${level}</strong>`}
      <span>${text}</span>
    </li>`
  })
  return html`<div class="log" tabindex="0" role="group" aria-label="Log lines"><ol>${lines}</ol></div>`
}
