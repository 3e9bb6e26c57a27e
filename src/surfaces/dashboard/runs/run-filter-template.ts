/** Template of the filters of the list of runs: a search, a workflow, a period, and a link for each status. */
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { type Html, html, labelledField, nothing, selectField } from '../html.ts'
import { isEmptyFilter, type RunFilter, toRunQuery } from './run-filter.ts'
import { statusOptions } from './run-labels.ts'

export function renderFilters(filter: RunFilter, workflows: Workflow[]): Html {
  const { search, workflow, statuses } = filter
  const options = [{ value: '', title: 'All workflows' }, ...workflows.map(({ id, title }) => ({ value: id, title }))]
  // A workflow that is no longer installed can still be filtered for.
  if (!options.some(({ value }) => value === workflow)) options.push({ value: workflow, title: workflow })
  const searchField = { name: 'search', label: 'Run ID, tag or error' }
  return html`<form method="get" action="/runs" class="filters" data-submit-on-change>
      ${labelledField(searchField, (common) => html`<input type="search" ${common} value="${search}" autocomplete="off" spellcheck="false" placeholder="Run ID, tag or error" />`)}
      ${selectField({ name: 'workflow', label: 'Workflow', value: workflow, options })}
      ${statuses.map((status) => html`<input type="hidden" name="status" value="${status}" />`)}
      ${renderPeriod(filter)}
      <button class="secondary">Apply</button>
      ${isEmptyFilter(filter) ? nothing : html`<a href="/runs">Clear filters</a>`}
    </form>
    <nav class="chips" aria-label="Status"><ul>${renderChips(filter)}</ul></nav>`
}

/** Each link adds its status to the filter or removes it, so that filters apply without a script. */
function renderChips(filter: RunFilter): Html[] {
  const { statuses } = filter
  const chip = (title: string, isChosen: boolean, chosen: RunFilter['statuses']) => {
    const query = toRunQuery({ ...filter, statuses: chosen })
    return html`<li><a href="/runs${query && '?'}${query}" ${isChosen ? html`aria-current="true"` : nothing}>${title}</a></li>`
  }
  const ofStatus = statusOptions.map(({ value, title }) => {
    const isChosen = statuses.includes(value)
    return chip(title, isChosen, isChosen ? statuses.filter((each) => each !== value) : [...statuses, value])
  })
  return [chip('All', statuses.length === 0, []), ...ofStatus]
}

/** The script puts the user's time zone into the field `zone`, unless a period was chosen in another. */
function renderPeriod({ from, until, zone }: RunFilter): Html {
  const isSet = from !== '' || until !== ''
  const field = (name: string, label: string, value: string) =>
    labelledField({ name, label }, (common) => html`<input type="datetime-local" ${common} value="${value}" />`)
  return html`<details class="period">
    <summary>${isSet ? html`<strong>Period set</strong>` : 'Any time'}</summary>
    <div class="fields">
      ${field('from', 'Queued from', from)} ${field('until', 'Queued before', until)}
      <small>Time zone: <span id="zone-name">${zone}</span></small>
      <input type="hidden" name="zone" value="${zone}" ${isSet ? nothing : html`data-zone="#zone-name"`} />
    </div>
  </details>`
}
