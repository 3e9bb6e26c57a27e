/** Templates of the forms of schedules. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Schedule } from '../../../domain/schedules/schedule.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { time } from '../format.ts'
import {
  attribute,
  backLink,
  facts,
  type Html,
  heading,
  html,
  inputField,
  labelledField,
  nothing,
  notice,
  selectField,
  textArea,
} from '../html.ts'
import { isPersistContext, persistDefault, renderContextChoice } from '../workflows/browser-context-choice.ts'
import { renderConcurrencyKey, renderTags } from '../workflows/run-names.ts'
import { type FormErrors, hasOptions, missedPolicies, overlapPolicies, type ScheduleForm } from './schedule-form.ts'
import { missedLabels, overlapLabels, renderTiming, schedulePath, scheduleTitle } from './schedule-labels.ts'

interface ScheduleFormPage {
  /** `undefined` for a new schedule. */
  schedule?: Schedule | undefined
  /** The id of a new schedule, so that submitting the form twice creates one. */
  id?: string
  workflows: Workflow[]
  /** Browser contexts to choose from. */
  contexts: readonly BrowserContext[]
  form: ScheduleForm
  errors: FormErrors
}

export function renderScheduleForm({ schedule, id = '', workflows, contexts, form, errors }: ScheduleFormPage): Html {
  const back = schedule ? schedulePath(schedule) : '/schedules'
  const title = schedule ? 'Edit schedule' : 'Create schedule'
  const options = workflows.map((workflow) => ({ value: workflow.id, title: workflow.title ?? workflow.id }))
  const workflow = schedule
    ? html`<p>Workflow: <code>${schedule.workflowId}</code></p>`
    : selectField({ name: 'workflowId', label: 'Workflow', value: form.workflowId, options, error: errors.workflowId })
  const variables = {
    name: 'variables',
    label: 'Variables, as JSON',
    hint: schedule ? 'Secrets are kept if you change nothing here. Otherwise enter them again.' : undefined,
    error: errors.variables,
  }
  return html`${backLink(back, schedule ? scheduleTitle(schedule) : 'Schedules')} ${heading(title)}
    ${errors.form ? notice('bad', errors.form) : nothing}
    <form method="post" class="card">
      ${schedule ? nothing : html`<input type="hidden" name="id" value="${id}" />`}
      ${inputField({ name: 'name', label: 'Name', value: form.name, error: errors.name, maxlength: 100, hint: 'Optional.' })}
      ${workflow}
      ${labelledField(variables, (common) => textArea(common, form.variables, 6))}
      ${inputField({ name: 'cron', label: 'Cron expression', value: form.cron, error: errors.cron, maxlength: 256, hint: 'Minute, hour, day of the month, month, day of the week, such as 0 7 * * MON-FRI.' })}
      ${inputField({ name: 'timeZone', label: 'Time zone', value: form.timeZone, error: errors.timeZone, maxlength: 64, hint: 'Of the cron expression, such as Europe/Berlin.' })}
      ${inputField({ name: 'intervalSeconds', label: 'Or an interval, in seconds', value: form.intervalSeconds, error: errors.intervalSeconds, inputmode: 'numeric' })}
      ${selectField({ name: 'missed', label: 'Missed times', value: form.missed, error: errors.missed, options: missedPolicies.map((value) => ({ value, title: missedLabels[value] })) })}
      ${selectField({ name: 'overlap', label: 'While a run is unfinished', value: form.overlap, error: errors.overlap, options: overlapPolicies.map((value) => ({ value, title: overlapLabels[value] })) })}
      ${renderOptions(form, errors, contexts)}
      <div class="buttons"><button>${schedule ? 'Save changes' : 'Create schedule'}</button><a href="${back}">Cancel</a></div>
    </form>`
}

function renderOptions(form: ScheduleForm, errors: FormErrors, contexts: readonly BrowserContext[]): Html {
  const { tags, concurrencyKey, priority, expiresInSeconds, browserContextId: contextId } = form
  const error = (name: keyof ScheduleForm) => (errors[name] === undefined ? {} : { error: errors[name] })
  const names = ['tags', 'concurrencyKey', 'priority', 'expiresInSeconds', 'browserContextId'] as const
  const isOpen = hasOptions(form) || names.some((name) => errors[name] !== undefined)
  const persist = isPersistContext(form.persistContext) ? form.persistContext : persistDefault
  return html`<details ${attribute('open', isOpen)}><summary>Options of its runs</summary>
    ${renderTags({ tags: { text: tags, ...error('tags') } })}
    ${renderConcurrencyKey({ concurrencyKey: { text: concurrencyKey, ...error('concurrencyKey') } })}
    ${inputField({ name: 'priority', label: 'Priority', value: priority, error: errors.priority, inputmode: 'numeric', hint: 'From -10 to 10. Runs with a higher priority start first; the default is 0.' })}
    ${inputField({ name: 'expiresInSeconds', label: 'Expires after (seconds)', value: expiresInSeconds, error: errors.expiresInSeconds, inputmode: 'numeric', hint: 'A run that has not started by then never starts.' })}
    ${renderContextChoice({ contextId, persist, ...error('browserContextId') }, contexts)}
  </details>`
}

export function renderScheduleDeletion(schedule: Schedule): Html {
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
