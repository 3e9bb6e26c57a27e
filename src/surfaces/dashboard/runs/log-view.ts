/** What a run has said, each line with its time since the run started. */

import type { Run, RunEvent } from '../../../domain/runs/run.ts'
import type { History } from '../../../domain/runs/run-history.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { byteSize, copyable } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { eventsCommand } from '../workflows/curl.ts'

export function logPart(run: Run, { events, logsOmitted }: History, executionUrl: string): Html {
  const lines = events.filter(({ type }) => type === 'log' || type === 'artifact')
  return html`<section class="card">
    <h2>Log</h2>
    ${logsOmitted > 0 ? omitted(logsOmitted) : nothing}
    ${lines.length === 0 ? html`<p class="muted">${isFinal(run.status) ? 'It said nothing.' : 'It has said nothing yet.'}</p>` : logLines(run, lines)}
    <details>
      <summary>Everything it says, with curl</summary>
      ${copyable('events-command', eventsCommand(executionUrl, run.id), { label: 'Copy command' })}
    </details>
  </section>`
}

function omitted(count: number): Html {
  const lines = count === 1 ? 'One earlier line is' : `${count.toLocaleString('en')} earlier lines are`
  return html`<p class="muted">${lines} not shown.</p>`
}

function logLines(run: Run, events: RunEvent[]): Html {
  const start = run.startedAt ?? run.createdAt
  let attempt: unknown
  const lines = events.map(({ type, at, data }) => {
    const isNext = run.attempts > 1 && data.attempt !== attempt
    attempt = data.attempt
    const level = type === 'artifact' ? 'info' : String(data.level)
    return html`${isNext ? html`<li class="divider">Attempt ${Number(data.attempt)}</li>` : nothing}<li class="${level}">
      <time datetime="${new Date(at).toISOString()}">${offset(at - start)}</time>
      ${level === 'info' ? nothing : html`<strong>${level}</strong>`}
      <span>${type === 'artifact' ? html`made ${String(data.name)}, ${byteSize(Number(data.sizeBytes))}` : String(data.message)}</span>
    </li>`
  })
  // Scrolled to its end without a script: what comes last is at the beginning of a reversed column.
  return html`<div class="log" tabindex="0" role="group" aria-label="Lines of the log"><ol>${lines}</ol></div>`
}

/** Such as `+0.250` and `+61.002`, in seconds. */
function offset(milliseconds: number): string {
  return `+${(Math.max(0, milliseconds) / 1000).toFixed(3)}`
}
