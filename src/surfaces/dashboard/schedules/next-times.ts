/** The next times of a schedule, shown while its form is filled in. */
import type { Schedule } from '../../../domain/schedules/schedule.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { type Html, html, nothing } from '../html.ts'
import type { StreamHandler } from '../page-handler.ts'
import { sendHtml } from '../page-routes.ts'
import { parseTiming, submittedForm, type TimingForm, toForm, toFormErrors } from './schedule-form.ts'

/** For the form's script. */
export const sendNextTimes: StreamHandler = async ({ account, query }, deps, _request, response) => {
  const schedule = await deps.schedules.get(account.id, query.get('schedule') ?? '')
  await sendHtml(response, 200, renderTimes(submittedForm(query), deps, schedule))
}

/** @param schedule the one that the form changes. */
export function renderNextTimes(form: TimingForm, deps: Dependencies, schedule: Schedule | undefined): Html {
  const source = `/schedules/next-times${schedule ? `?schedule=${schedule.id}` : ''}`
  // Errors of a submitted form are shown at their fields.
  const times = 'errors' in readTimes(form, deps, schedule) ? nothing : renderTimes(form, deps, schedule)
  return html`<div class="field"><label for="next-times">Next times</label>
    <output id="next-times" data-next-times="${source}">${times}</output></div>`
}

function renderTimes(form: TimingForm, deps: Dependencies, schedule: Schedule | undefined): Html {
  const read = readTimes(form, deps, schedule)
  if ('times' in read) return html`${read.times.map((at) => html`<span>${time(at, 'exact')}</span>`)}`
  return html`${Object.values(read.errors).map((error) => html`<span class="muted">${error}</span>`)}`
}

function readTimes(form: TimingForm, { schedules }: Dependencies, schedule: Schedule | undefined) {
  // The times of an unchanged interval count from an earlier instant.
  if (schedule && schedule.nextTimes.length > 0 && isSame(form, toForm(schedule))) return { times: schedule.nextTimes }
  const parsed = parseTiming(form)
  if ('errors' in parsed) return parsed
  const preview = schedules.previewTimes(parsed.given)
  return 'errors' in preview ? { errors: toFormErrors(preview.errors) } : preview
}

function isSame(a: TimingForm, b: TimingForm): boolean {
  return a.cron === b.cron && a.intervalSeconds === b.intervalSeconds && (a.cron === '' || a.timeZone === b.timeZone)
}
