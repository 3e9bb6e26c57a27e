/** The tab "Schedules". */

import { v7 as uuid } from 'uuid'
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { toMemberErrors, tooManyQueuedRuns } from '../../../domain/queue/queue-problems.ts'
import type { QueueResult } from '../../../domain/run-api/runs.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type {
  OverlapPolicy,
  PausedReason,
  Schedule,
  ScheduleError,
  SkipReason,
} from '../../../domain/schedules/schedule.ts'
import type { ScheduleChange } from '../../../domain/schedules/schedule-request.ts'
import type { MissedPolicy } from '../../../domain/schedules/schedule-times.ts'
import type { Members } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { parseId } from '../../../storage/statement-values.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatDuration, time } from '../format.ts'
import {
  attribute,
  backLink,
  badge,
  emptyState,
  type Fact,
  facts,
  type Html,
  heading,
  html,
  inputField,
  nothing,
  notice,
  selectField,
  table,
} from '../html.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { type QueuerLabel, readQueuerLabels, runLink } from '../runs/run-labels.ts'
import { renderRunTable } from '../runs/run-table.ts'
import { formatErrors } from '../workflows/form-values.ts'
import {
  newVariablesForm,
  parseForm as parseVariablesForm,
  readVariablesForm,
  type VariablesForm,
  withErrors,
  withoutSecrets,
} from '../workflows/queue-form.ts'
import { renderVariables } from '../workflows/queue-form-template.ts'
import {
  isPersistContext,
  optionFacts,
  persistDefault,
  renderContextChoice,
  renderOption,
} from '../workflows/queue-options.ts'
import { listSelectableContexts } from '../workflows/workflow-pages.ts'
import { renderNextTimes } from './next-times.ts'
import {
  emptyForm,
  type FormErrors,
  hasOptions,
  missedPolicies,
  overlapPolicies,
  parseForm,
  type ScheduleForm,
  submittedForm,
  textOptions,
  toForm,
  toFormErrors,
} from './schedule-form.ts'

const schedulesPerPage = 50
const runsShown = 20

export const listSchedules: PageHandler = async ({ account, user, query }, { schedules }) => {
  const cursor = query.get('cursor') ?? undefined
  const page = await schedules.list(account.id, { limit: schedulesPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!page) return { location: '/schedules' }
  const message = query.get('done') === 'deleted' ? 'Schedule deleted. Its runs stay.' : undefined
  return scheduleTab('Schedules', renderScheduleList({ ...page, isFirstPage: cursor === undefined, message, user }))
}

export const showNewSchedule: PageHandler = async (request, deps) => {
  const { account, query } = request
  const current = deps.workflows.current(account.id)
  const workflow = current.get(query.get('workflowId') ?? '') ?? current.list()[0]
  const entered = newVariables(workflow, undefined, query.get('as') === 'json')
  return formPage(request, deps, { id: uuid(), form: { ...emptyForm, workflowId: workflow?.id ?? '' }, entered })
}

export const createSchedule: PageHandler = async (request, deps) => {
  const { account, actor, form: fields } = request
  const given = formId(fields)
  // Other versions of UUIDs are not found again.
  const id = parseId(given) ?? uuid()
  const { given: wanted, ...submitted } = readForm(request, deps)
  if (!wanted) return formPage(request, deps, { id, ...submitted }, 400)
  const { workflowId } = submitted.form
  const created = await deps.schedules.create(account.id, { ...wanted, workflowId }, actor, id)
  switch (created.kind) {
    case 'created':
      return { location: `${schedulePath(created.schedule)}?done=created` }
    case 'invalid':
      return formPage(request, deps, { id, ...withRefusal(submitted, created.errors) }, 400)
    case 'tooManySchedules': {
      const text = `This account has ${created.schedulesMax} schedules. Delete one to create another.`
      return formPage(request, deps, { id, ...submitted, errors: { form: text } }, 409)
    }
  }
}

export const showScheduleChange: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  const workflow = deps.workflows.current(request.account.id).get(schedule.workflowId)
  const entered = newVariables(workflow, schedule, request.query.get('as') === 'json')
  return formPage(request, deps, { schedule, form: toForm(schedule), entered })
}

export const changeSchedule: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  const { given, ...submitted } = readForm(request, deps, schedule)
  if (!given) return formPage(request, deps, { schedule, ...submitted }, 400)
  const updated = orNotFound(await deps.schedules.update(request.account.id, schedule.id, given, request.actor))
  if ('errors' in updated) {
    return formPage(request, deps, { schedule, ...withRefusal(submitted, updated.errors) }, 400)
  }
  return { location: `${schedulePath(schedule)}?done=changed` }
}

interface EnteredForm {
  form: ScheduleForm
  entered: VariablesForm
  errors?: FormErrors
}

/** The variables of a schedule whose workflow is no longer deployed are shown as JSON: without a schema. */
function newVariables(workflow: Workflow | undefined, schedule: Schedule | undefined, wantsJson: boolean) {
  const earlier = schedule && ({ variables: schedule.variables, owner: 'schedule' } as const)
  return newVariablesForm(workflow?.variables ?? {}, wantsJson, earlier)
}

/** The submitted form, and what it asks for unless a field is invalid. */
function readForm(
  { account, form: fields }: PageRequest,
  { workflows }: Dependencies,
  schedule?: Schedule,
): EnteredForm & { given?: GivenSchedule } {
  const submitted = submittedForm(fields)
  const form = schedule ? { ...submitted, workflowId: schedule.workflowId } : submitted
  const workflow = workflows.current(account.id).get(form.workflowId)
  const fresh = newVariables(workflow, schedule, false)
  const entered = readVariablesForm(fresh, fields.has('variables') ? 'json' : 'fields', fields)
  const variables = parseVariablesForm(entered)
  const others = parseForm(form)
  const errors = 'errors' in others ? others.errors : {}
  // Without a schema, any text may be a secret: the stored variables are shown again.
  const shown = workflow ? withoutSecrets('invalid' in variables ? variables.invalid : entered) : fresh
  if ('errors' in others || 'invalid' in variables) return { form, entered: shown, errors }
  if (entered.mode === 'fields') removeDefaults(variables.value, entered)
  return { form, entered: shown, given: { ...others.given, variables: variables.value } }
}

type GivenSchedule = ScheduleChange & { variables: Members }

/** Each run is to get the default of its deployment, unless the schedule was given the same value. */
function removeDefaults(variables: Members, { fields, earlier }: VariablesForm): void {
  for (const { name, default: value } of fields) {
    if (value === undefined || Object.hasOwn(earlier?.variables ?? {}, name)) continue
    if (JSON.stringify(variables[name]) === JSON.stringify(value)) delete variables[name]
  }
}

/** Shows errors of variables at their fields. */
function withRefusal({ form, entered }: EnteredForm, refused: readonly ScheduleError[]): EnteredForm {
  const { variables = [], others = [] } = Object.groupBy(refused, ({ pointer }) =>
    pointer.startsWith('/variableData') ? 'variables' : 'others',
  )
  const errors = variables.map(({ pointer, detail }) => ({ pointer: pointer.slice('/variableData'.length), detail }))
  return { form, entered: withErrors(entered, errors), errors: toFormErrors(others) }
}

export const setPaused: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  const paused = request.form.get('paused') === 'true'
  const updated = orNotFound(await deps.schedules.update(request.account.id, schedule.id, { paused }, request.actor))
  if ('errors' in updated) return schedulePage(request, deps, schedule, refusal(updated.errors), 409)
  return { location: `${schedulePath(schedule)}?done=${paused ? 'paused' : 'resumed'}` }
}

export const triggerSchedule: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  const queued = orNotFound(await deps.schedules.trigger(request.account.id, schedule.id, request.actor))
  if (queued.kind === 'queued') return { location: `/runs/${queued.run.id}` }
  return schedulePage(request, deps, schedule, describeRefusal(queued), 409)
}

function describeRefusal(refused: Exclude<QueueResult, { kind: 'queued' }>): string {
  switch (refused.kind) {
    case 'tooManyQueuedRuns':
      return tooManyQueuedRuns(refused).problem.detail
    case 'idempotencyConflict':
    case 'runDeleted':
      return 'The run was not queued.'
    default:
      return refusal(toMemberErrors(refused))
  }
}

function refusal(errors: readonly ScheduleError[]): string {
  return `Runs of this schedule would be refused: ${errors.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')}.`
}

const messages = new Map([
  ['created', 'Schedule created.'],
  ['changed', 'Schedule changed.'],
  ['paused', 'Schedule paused.'],
  ['resumed', 'Schedule resumed.'],
])

export const showSchedule: PageHandler = async (request, deps) =>
  schedulePage(request, deps, await findSchedule(request, deps))

async function schedulePage(
  { account, user, query }: PageRequest,
  deps: Dependencies,
  schedule: Schedule,
  error?: string,
  status = 200,
): Promise<Page> {
  const [page, queuerLabel] = await Promise.all([
    deps.runs.list(account.id, { scheduleId: schedule.id, limit: runsShown }),
    readQueuerLabels(deps, account.id),
  ])
  const done = messages.get(query.get('done') ?? '')
  const message = error ? ({ tone: 'bad', text: error } as const) : done && ({ tone: 'good', text: done } as const)
  const workflows = deps.workflows.current(account.id).list()
  const shown = { schedule, runs: page?.runs ?? [], workflows, queuerLabel, message: message || undefined, user }
  return scheduleTab(scheduleTitle(schedule), renderSchedule(shown), status)
}

export const confirmScheduleDeletion: PageHandler = async (request, deps) =>
  scheduleTab('Delete schedule', renderScheduleDeletion(await findSchedule(request, deps)))

export const deleteSchedule: PageHandler = async ({ account, params, actor }, { schedules }) => {
  orNotFound(await schedules.delete(account.id, params.id ?? '', actor))
  return { location: '/schedules?done=deleted' }
}

/** @property id of a new schedule, so that submitting its form twice creates one. */
interface ShownForm extends EnteredForm {
  schedule?: Schedule
  id?: string
}

async function formPage(request: PageRequest, deps: Dependencies, shown: ShownForm, status = 200): Promise<Page> {
  const { form, schedule } = shown
  const workflows = deps.workflows.current(request.account.id).list()
  const contexts = await listSelectableContexts(request, deps, form.browserContextId)
  const times = renderNextTimes(form, deps, schedule)
  const title = schedule ? 'Edit schedule' : 'Create schedule'
  return scheduleTab(title, renderScheduleForm({ ...shown, workflows, contexts, times }), status)
}

async function findSchedule({ account, params }: PageRequest, { schedules }: Dependencies): Promise<Schedule> {
  return orNotFound(await schedules.get(account.id, params.id ?? ''))
}

function scheduleTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'schedules', body, status }
}

// Templates of the list of schedules and of one schedule's page.

interface ScheduleList {
  schedules: Schedule[]
  nextCursor: string | null
  isFirstPage: boolean
  message: string | undefined
  user: User
}

const createButton = (user: User) =>
  may(user, 'GET /schedules/new') ? html`<a class="button" href="/schedules/new">Create schedule</a>` : html``

function renderScheduleList({ schedules, nextCursor, isFirstPage, message, user }: ScheduleList): Html {
  const isEmpty = schedules.length === 0 && isFirstPage
  const lead = 'Queue runs by a cron expression or an interval. Each time makes exactly one run.'
  return html`${heading('Schedules', { lead, ...(!isEmpty && { actions: createButton(user) }) })}
    ${message ? notice('good', message) : nothing}
    <div id="schedules" data-live="/runs/changes">${isEmpty ? noSchedules(user) : renderTable(schedules)}</div>
    <p class="pages">
      ${isFirstPage ? nothing : html`<a href="/schedules">← Newest</a>`}
      ${nextCursor === null ? nothing : html`<a href="/schedules?cursor=${nextCursor}">Older →</a>`}
    </p>`
}

const noSchedules = (user: User) =>
  emptyState(
    'No schedules',
    html`<p>A schedule queues a run of a workflow every night, every hour, or whenever you say.</p><p>${createButton(user)}</p>`,
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
  user: User
}

function renderSchedule({ schedule, runs, workflows, queuerLabel, message, user }: SchedulePage): Html {
  const { pausedReason, pausedDetail, lastSkipped } = schedule
  const detail = pausedDetail === null ? '' : ` ${pausedDetail.message}`
  return html`${backLink('/schedules', 'Schedules')}
    ${message ? notice(message.tone, message.text) : nothing}
    <div id="schedule" data-live="/runs/changes">
      ${scheduleBadge(schedule)} ${heading(scheduleTitle(schedule), { actions: renderActions(schedule, user) })}
      ${pausedReason === null ? nothing : notice(pausedReason === 'request' ? 'quiet' : 'warning', `${pausedMessages[pausedReason]}${detail}`)}
      <section class="card">
        ${facts([
          ['Workflow', html`<a href="/workflows/${schedule.workflowId}">${schedule.workflowId}</a>`],
          ['Times', renderTiming(schedule)],
          ['Next times', renderTimesOf(schedule)],
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
function renderOptions(schedule: Schedule): Fact[] {
  const { browserContextId: id } = schedule
  const link = html`<a href="/browser-contexts/${id ?? ''}"><code>${id ?? ''}</code></a>`
  return [...optionFacts(schedule), ...(id === null ? [] : [['Browser context', link] satisfies Fact])]
}

function renderTimesOf({ nextTimes }: Schedule): Html {
  if (nextTimes.length === 0) return html`<span class="muted">none</span>`
  return html`<div class="stack">${nextTimes.map((at) => html`<span>${time(at, 'exact')}</span>`)}</div>`
}

function renderActions(schedule: Schedule, user: User): Html {
  if (!may(user, 'POST /schedules/:id/edit')) return html``
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

// Templates of the forms of schedules.

interface ScheduleFormPage extends ShownForm {
  workflows: Workflow[]
  /** Browser contexts to choose from. */
  contexts: readonly BrowserContext[]
  /** The field with the next times. */
  times: Html
}

function renderScheduleForm(page: ScheduleFormPage): Html {
  const { schedule, id = '', contexts, form, entered, errors = {}, times } = page
  const general = [...(errors.form ? [errors.form] : []), ...entered.errors.map((error) => formatErrors([error]))]
  const back = schedule ? schedulePath(schedule) : '/schedules'
  const title = schedule ? 'Edit schedule' : 'Create schedule'
  const workflow = schedule
    ? html`<p>Workflow: <code>${schedule.workflowId}</code></p>`
    : html`<input type="hidden" name="id" value="${id}" /><input type="hidden" name="workflowId" value="${form.workflowId}" />`
  return html`${backLink(back, schedule ? scheduleTitle(schedule) : 'Schedules')} ${heading(title)}
    ${general.length > 0 ? notice('bad', general.join(' ')) : nothing}
    ${schedule ? nothing : renderWorkflowChoice(page)}
    <form method="post" ${schedule ? nothing : html`action="/schedules/new"`} class="card">
      ${workflow}
      ${inputField({ name: 'name', label: 'Name', value: form.name, error: errors.name, maxlength: 100, hint: 'Optional.' })}
      <div class="form-head"><h2>Variables</h2>${renderModeLink(page)}</div>
      ${renderVariables(entered)}
      <h2>Times</h2>
      ${inputField({ name: 'cron', label: 'Cron expression', value: form.cron, error: errors.cron, maxlength: 256, hint: 'Minute, hour, day of the month, month, day of the week, such as 0 7 * * MON-FRI.' })}
      ${inputField({ name: 'timeZone', label: 'Time zone', value: form.timeZone, error: errors.timeZone, maxlength: 64, hint: 'Of the cron expression, such as Europe/Berlin.' })}
      ${inputField({ name: 'intervalSeconds', label: 'Or an interval, in seconds', value: form.intervalSeconds, error: errors.intervalSeconds, inputmode: 'numeric' })}
      ${times}
      ${selectField({ name: 'missed', label: 'Missed times', value: form.missed, error: errors.missed, options: missedPolicies.map((value) => ({ value, title: missedLabels[value] })) })}
      ${selectField({ name: 'overlap', label: 'While a run is unfinished', value: form.overlap, error: errors.overlap, options: overlapPolicies.map((value) => ({ value, title: overlapLabels[value] })) })}
      ${renderRunOptions(form, errors, contexts)}
      <div class="buttons"><button>${schedule ? 'Save changes' : 'Create schedule'}</button><a href="${back}">Cancel</a></div>
    </form>`
}

/** Another workflow has other variables: its form is another page. */
function renderWorkflowChoice({ workflows, form, errors = {} }: ScheduleFormPage): Html {
  const options = workflows.map((workflow) => ({ value: workflow.id, title: workflow.title ?? workflow.id }))
  return html`<form method="get" action="/schedules/new" class="card" data-submit-on-change>
    ${selectField({ name: 'workflowId', label: 'Workflow', value: form.workflowId, options, error: errors.workflowId })}
    <button class="secondary">Choose workflow</button>
  </form>`
}

/** Switches between fields and JSON. What was entered is lost. */
function renderModeLink({ schedule, form: { workflowId }, entered: { mode, jsonOnly } }: ScheduleFormPage): Html | '' {
  if (jsonOnly) return nothing
  const query = new URLSearchParams({ ...(!schedule && { workflowId }), ...(mode === 'fields' && { as: 'json' }) })
  const path = schedule ? `${schedulePath(schedule)}/edit` : '/schedules/new'
  const href = query.size > 0 ? `${path}?${query}` : path
  return html`<a href="${href}">${mode === 'json' ? 'Edit as fields' : 'Edit as JSON'}</a>`
}

function renderRunOptions(form: ScheduleForm, errors: FormErrors, contexts: readonly BrowserContext[]): Html {
  const { browserContextId: contextId, persistContext } = form
  const error = (name: keyof ScheduleForm) => (errors[name] === undefined ? {} : { error: errors[name] })
  const isOpen = hasOptions(form) || [...textOptions, 'browserContextId' as const].some((name) => errors[name])
  const persist = isPersistContext(persistContext) ? persistContext : persistDefault
  return html`<details ${attribute('open', isOpen)}><summary>Options of its runs</summary>
    ${textOptions.map((name) => renderOption(name, { text: form[name], ...error(name) }))}
    ${renderContextChoice({ contextId, persist, ...error('browserContextId') }, contexts)}
  </details>`
}

function renderScheduleDeletion(schedule: Schedule): Html {
  return html`${backLink(schedulePath(schedule), scheduleTitle(schedule))} ${heading('Delete this schedule?')}
    <form method="post" class="card">
      <p>It queues no more runs. Its runs stay. <strong>This cannot be undone.</strong></p>
      ${facts([
        ['Schedule', scheduleTitle(schedule)],
        ['Times', renderTiming(schedule)],
        ['Created', time(schedule.createdAt)],
      ])}
      <div class="buttons"><button class="danger">Delete schedule</button><a href="${schedulePath(schedule)}">Cancel</a></div>
    </form>`
}

// How pages describe a schedule.

function schedulePath({ id }: Pick<Schedule, 'id'>): string {
  return `/schedules/${id}`
}

function scheduleTitle({ name, workflowId }: Pick<Schedule, 'name' | 'workflowId'>): string {
  return name ?? workflowId
}

function scheduleBadge({ pausedReason }: Schedule): Html {
  if (pausedReason === null) return badge('good', 'Active')
  return pausedReason === 'request' ? badge('quiet', 'Paused') : badge('bad', 'Paused')
}

function renderTiming({ cron, timeZone, intervalSeconds }: Schedule): Html {
  if (cron === null) return html`every ${formatDuration((intervalSeconds ?? 0) * 1000)}`
  return html`<div class="stack"><code>${cron}</code> <small>${timeZone ?? ''}</small></div>`
}

const missedLabels: Record<MissedPolicy, string> = {
  skip: 'Get no runs',
  runOnce: 'The latest gets a run',
  runAll: 'Each gets a run, at most the latest 100',
}

const overlapLabels: Record<OverlapPolicy, string> = {
  allow: 'Queue the run, too',
  skip: 'Leave the time out',
  queue: 'Wait until the run has ended',
  cancelPrevious: 'Cancel the unfinished run',
}

const skipLabels: Record<SkipReason, string> = {
  missed: 'missed',
  overlap: 'an earlier run had not ended',
  queuedRunsLimit: 'the account had reached its limit of queued runs',
  storageQuota: 'the account had reached its storage quota',
}

const pausedMessages: Record<PausedReason, string> = {
  request: 'This schedule is paused. Times that pass get no runs.',
  workflowRemoved: 'This schedule was paused: its workflow is no longer deployed.',
  runInvalid:
    'This schedule was paused: the current version of its workflow refuses its runs. Edit it, then resume it.',
  browserContextRemoved: 'This schedule was paused: its browser context was deleted.',
  error: 'This schedule was paused: the service could not read it. Its log says why.',
}
