/** The tab "Schedules". Every user of the account can do all of this. */
import { v7 as uuid } from 'uuid'
import { refusedDetails, tooManyQueuedRuns } from '../../../domain/runs/queue-problems.ts'
import type { QueueResult } from '../../../domain/runs/runs.ts'
import { type Schedule, type ScheduleError, toErrors } from '../../../domain/schedules/schedule.ts'
import { parseId } from '../../../storage/statement-values.ts'
import type { Dependencies } from '../dependencies.ts'
import type { Html } from '../html.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { readQueuerLabels } from '../runs/run-labels.ts'
import { findSecretPlaces, hiddenSecret, hideSecrets } from '../workflows/json-input.ts'
import { listSelectableContexts } from '../workflows/workflow-handlers.ts'
import {
  emptyForm,
  type FormErrors,
  parseForm,
  type ScheduleForm,
  submittedForm,
  toForm,
  toFormErrors,
} from './schedule-form.ts'
import { renderScheduleDeletion, renderScheduleForm } from './schedule-form-templates.ts'
import { schedulePath, scheduleTitle } from './schedule-labels.ts'
import { renderSchedule, renderScheduleList } from './schedule-templates.ts'

const schedulesPerPage = 50
const runsShown = 20

export const listSchedules: PageHandler = async ({ account, query }, { schedules }) => {
  const cursor = query.get('cursor') ?? undefined
  const page = await schedules.list(account.id, { limit: schedulesPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!page) return { location: '/schedules' }
  const message = query.get('done') === 'deleted' ? 'Schedule deleted. Its runs stay.' : undefined
  return scheduleTab('Schedules', renderScheduleList({ ...page, isFirstPage: cursor === undefined, message }))
}

export const showNewSchedule: PageHandler = async (request, deps) =>
  formPage(request, deps, { id: uuid(), form: emptyForm, errors: {} })

export const createSchedule: PageHandler = async (request, deps) => {
  const { account, actor, form: fields } = request
  const given = formId(fields)
  // Other versions of UUIDs are not found again.
  const id = parseId(given) ?? uuid()
  const form = submittedForm(fields)
  const parsed = parseForm(form)
  if ('errors' in parsed) return formPage(request, deps, { id, form, errors: parsed.errors }, 400)
  const wanted = { ...parsed.given, workflowId: form.workflowId }
  const created = await deps.schedules.create(account.id, wanted, actor, id)
  switch (created.kind) {
    case 'created':
      return { location: `${schedulePath(created.schedule)}?done=created` }
    case 'invalid':
      return formPage(request, deps, { id, form, errors: toFormErrors(created.errors) }, 400)
    case 'tooManySchedules': {
      const text = `This account has ${created.schedulesMax} schedules. Delete one to create another.`
      return formPage(request, deps, { id, form, errors: { form: text } }, 409)
    }
  }
}

export const showScheduleChange: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  return formPage(request, deps, { schedule, form: toForm(schedule), errors: {} })
}

export const changeSchedule: PageHandler = async (request, deps) => {
  const schedule = await findSchedule(request, deps)
  const form = { ...submittedForm(request.form), workflowId: schedule.workflowId }
  const parsed = parseForm(form)
  if ('errors' in parsed) return formPage(request, deps, { schedule, form, errors: parsed.errors }, 400)
  const updated = orNotFound(await deps.schedules.update(request.account.id, schedule.id, parsed.given, request.actor))
  if ('errors' in updated) {
    return formPage(request, deps, { schedule, form, errors: toFormErrors(updated.errors) }, 400)
  }
  return { location: `${schedulePath(schedule)}?done=changed` }
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
    case 'noSuchBrowserContext':
      return refusal([{ pointer: '/browserContextId', detail: refusedDetails.noSuchBrowserContext }])
    case 'idempotencyConflict':
    case 'runDeleted':
      return 'The run was not queued.'
    default:
      return refusal(toErrors(refused))
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
  { account, query }: PageRequest,
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
  const shown = { schedule, runs: page?.runs ?? [], workflows, queuerLabel, message: message || undefined }
  return scheduleTab(scheduleTitle(schedule), renderSchedule(shown), status)
}

export const confirmScheduleDeletion: PageHandler = async (request, deps) =>
  scheduleTab('Delete schedule', renderScheduleDeletion(await findSchedule(request, deps)))

export const deleteSchedule: PageHandler = async ({ account, params, actor }, { schedules }) => {
  orNotFound(await schedules.delete(account.id, params.id ?? '', actor))
  return { location: '/schedules?done=deleted' }
}

interface ShownForm {
  schedule?: Schedule
  id?: string
  form: ScheduleForm
  errors: FormErrors
}

async function formPage(request: PageRequest, deps: Dependencies, shown: ShownForm, status = 200): Promise<Page> {
  const current = deps.workflows.current(request.account.id)
  const workflow = current.get(shown.form.workflowId)
  // Secrets that were entered are not shown again.
  const stored = shown.schedule ? toForm(shown.schedule).variables : emptyForm.variables
  const variables = workflow ? hideSecrets(shown.form.variables, findSecretPlaces(workflow.variables)) : stored
  const isHidden = variables === undefined || variables.includes(hiddenSecret)
  const form = { ...shown.form, variables: variables ?? '' }
  const errors = { ...shown.errors }
  if (isHidden && !errors.variables) errors.variables = 'Enter the secrets again.'
  const title = shown.schedule ? 'Edit schedule' : 'Create schedule'
  const contexts = await listSelectableContexts(request, deps, form.browserContextId)
  return scheduleTab(title, renderScheduleForm({ ...shown, workflows: current.list(), contexts, form, errors }), status)
}

async function findSchedule({ account, params }: PageRequest, { schedules }: Dependencies): Promise<Schedule> {
  return orNotFound(await schedules.get(account.id, params.id ?? ''))
}

function scheduleTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'schedules', body, status }
}
