/** Templates of the list of schedules and of one schedule's page. */
import type { Run } from '../../../domain/runs/run.ts'
import type { Schedule } from '../../../domain/schedules/schedule.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { formatDuration, time } from '../format.ts'
import { backLink, emptyState, type Fact, facts, type Html, heading, html, nothing, notice, table } from '../html.ts'
import { type QueuerLabel, runLink } from '../runs/run-labels.ts'
import { renderRunTable } from '../runs/run-table.ts'
import {
  missedLabels,
  overlapLabels,
  pausedMessages,
  renderTiming,
  scheduleBadge,
  schedulePath,
  scheduleTitle,
  skipLabels,
} from './schedule-labels.ts'

interface ScheduleList {
  schedules: Schedule[]
  nextCursor: string | null
  isFirstPage: boolean
  message: string | undefined
}

const createButton = html`<a class="button" href="/schedules/new">Create schedule</a>`

export function renderScheduleList({ schedules, nextCursor, isFirstPage, message }: ScheduleList): Html {
  const isEmpty = schedules.length === 0 && isFirstPage
  const lead = 'Queue runs by a cron expression or an interval. Each time makes exactly one run.'
  return html`${heading('Schedules', { lead, ...(!isEmpty && { actions: createButton }) })}
    ${message ? notice('good', message) : nothing}
    <div id="schedules" data-live="/runs/changes">${isEmpty ? noSchedules : renderTable(schedules)}</div>
    <p class="pages">
      ${isFirstPage ? nothing : html`<a href="/schedules">← Newest</a>`}
      ${nextCursor === null ? nothing : html`<a href="/schedules?cursor=${nextCursor}">Older →</a>`}
    </p>`
}

const noSchedules = emptyState(
  'No schedules',
  html`<p>A schedule queues a run of a workflow every night, every hour, or whenever you say.</p><p>${createButton}</p>`,
)

function renderTable(schedules: Schedule[]): Html {
  const rows = schedules.map((schedule) => [
    html`<div class="stack"><strong><a href="${schedulePath(schedule)}">${scheduleTitle(schedule)}</a></strong>
      <small>${schedule.workflowId}</small></div>`,
    renderTiming(schedule),
    scheduleBadge(schedule),
    time(schedule.nextTimes[0] ?? null, 'relative', 'none'),
    renderLastRun(schedule),
  ])
  return table(['Schedule', 'Times', 'Status', 'Next time', 'Last run'], rows, 'Schedules, newest first')
}

function renderLastRun({ lastRun }: Schedule): Html {
  if (!lastRun) return html`<span class="muted">none</span>`
  const { id, scheduledFor, status } = lastRun
  if (status === null) return html`<span>${time(scheduledFor)} <span class="muted">deleted</span></span>`
  return html`<div class="stack">${runLink(id)} <small>${status}, ${time(scheduledFor)}</small></div>`
}

interface SchedulePage {
  schedule: Schedule
  runs: Run[]
  workflows: Workflow[]
  queuerLabel: QueuerLabel
  message: { tone: 'good' | 'bad'; text: string } | undefined
}

export function renderSchedule({ schedule, runs, workflows, queuerLabel, message }: SchedulePage): Html {
  const { pausedReason, pausedDetail, lastSkipped } = schedule
  const detail = pausedDetail === null ? '' : ` ${pausedDetail}`
  return html`${backLink('/schedules', 'Schedules')}
    ${message ? notice(message.tone, message.text) : nothing}
    <div id="schedule" data-live="/runs/changes">
      ${scheduleBadge(schedule)} ${heading(scheduleTitle(schedule), { actions: renderActions(schedule) })}
      ${pausedReason === null ? nothing : notice(pausedReason === 'request' ? 'quiet' : 'warning', `${pausedMessages[pausedReason]}${detail}`)}
      <section class="card">
        ${facts([
          ['Workflow', html`<a href="/workflows/${schedule.workflowId}">${schedule.workflowId}</a>`],
          ['Times', renderTiming(schedule)],
          ['Next times', renderNextTimes(schedule)],
          ['Missed times', missedLabels[schedule.missed]],
          ['While a run is unfinished', overlapLabels[schedule.overlap]],
          ...renderOptions(schedule),
          ['Last run', renderLastRun(schedule)],
          [
            'Last time without a run',
            lastSkipped
              ? html`${time(lastSkipped.scheduledFor, 'exact')}: ${skipLabels[lastSkipped.reason]}`
              : html`<span class="muted">none</span>`,
          ],
          ['Created', time(schedule.createdAt, 'exact')],
          ['ID', html`<code>${schedule.id}</code>`],
        ])}
      </section>
      <h2>Variables</h2>
      <pre tabindex="0" aria-label="Variables"><code>${JSON.stringify(schedule.variables, null, 2)}</code></pre>
      <h2>Runs</h2>
      ${runs.length === 0 ? html`<p class="muted">None yet.</p>` : renderRunTable({ runs, workflows, queuerLabel })}
    </div>`
}

/** The options of its runs that are not the defaults. */
function renderOptions({ tags, concurrencyKey, priority, expiresInSeconds, browserContextId }: Schedule): Fact[] {
  const facts: (Fact | false)[] = [
    tags.length > 0 && ['Tags', html`${tags.map((tag) => html`<code>${tag}</code> `)}`],
    concurrencyKey !== null && ['Concurrency key', html`<code>${concurrencyKey}</code>`],
    priority !== 0 && ['Priority', `${priority}`],
    expiresInSeconds !== null && ['Expires if not started', `after ${formatDuration(expiresInSeconds * 1000)}`],
    browserContextId !== null && [
      'Browser context',
      html`<a href="/browser-contexts/${browserContextId}"><code>${browserContextId}</code></a>`,
    ],
  ]
  return facts.filter((fact) => fact !== false)
}

function renderNextTimes({ nextTimes }: Schedule): Html {
  if (nextTimes.length === 0) return html`<span class="muted">none</span>`
  return html`<div class="stack">${nextTimes.map((at) => html`<span>${time(at, 'exact')}</span>`)}</div>`
}

function renderActions(schedule: Schedule): Html {
  const path = schedulePath(schedule)
  const isActive = schedule.pausedReason === null
  return html`<form method="post" action="${path}/trigger"><button>Run now</button></form>
    <form method="post" action="${path}/state">
      <input type="hidden" name="paused" value="${isActive ? 'true' : 'false'}" />
      <button class="secondary">${isActive ? 'Pause' : 'Resume'}</button>
    </form>
    <a class="button secondary" href="${path}/edit">Edit</a>
    <a class="button secondary danger" href="${path}/delete">Delete</a>`
}
