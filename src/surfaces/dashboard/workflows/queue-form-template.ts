/** Template of the form that queues a run. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { mask } from '../../../domain/workflows/secrets.ts'
import { time } from '../format.ts'
import { attribute, type Html, html, labelledField, nothing, notice, textArea } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'
import { renderContextChoice } from './browser-context-choice.ts'
import { formatErrors } from './form-values.ts'
import { hiddenSecret } from './json-input.ts'
import type { QueueForm } from './queue-form.ts'
import { type OptionName, optionBounds } from './queue-options.ts'
import { renderConcurrencyKey, renderTags } from './run-names.ts'
import { renderStartChoice } from './start-choice.ts'
import { renderVariableField } from './variable-field-template.ts'

/** @param contexts the browser contexts to choose from. */
export function renderQueueForm(form: QueueForm, error: string, contexts: readonly BrowserContext[]): Html {
  const { workflow, mode, from, key, errors, context } = form
  const path = `/workflows/${workflow.id}${mode === 'json' ? '?as=json' : ''}`
  return html`${error ? notice('bad', html`${error}${errors.map((each) => html`<br />${formatErrors([each])}`)}`) : nothing}
    <form method="post" action="${path}" class="card" id="queue">
      <div class="form-head"><h2>${from ? 'Run again' : 'Run'}</h2>${renderModeLink(form)}</div>
      ${from ? html`<p class="muted">Variables of ${runLink(from.id)}, queued ${time(from.createdAt)}.</p>` : nothing}
      <input type="hidden" name="key" value="${key}" />
      ${from ? html`<input type="hidden" name="from" value="${from.id}" />` : nothing}
      ${form.start ? renderStartChoice(form.start) : nothing}
      ${mode === 'json' ? renderJson(form) : renderFields(form)}
      ${workflow.usesBrowser ? renderContextChoice(context, contexts) : nothing}
      ${renderConcurrencyKey(form.names)} ${renderTags(form.names)} ${renderOptions(form)}
      <div class="buttons"><button>Queue run</button></div>
    </form>`
}

/** Switches between fields and JSON. What was entered is lost. */
function renderModeLink({ workflow, mode, jsonOnly, from, context: { contextId } }: QueueForm): Html | '' {
  if (jsonOnly) return nothing
  const query = new URLSearchParams({
    ...(from && { from: from.id }),
    ...(contextId !== '' && { browserContextId: contextId }),
    ...(mode === 'fields' && { as: 'json' }),
  })
  const path = `/workflows/${workflow.id}${query.size > 0 ? `?${query}` : ''}`
  return html`<a href="${path}">${mode === 'json' ? 'Edit as fields' : 'Edit as JSON'}</a>`
}

function renderFields({ fields, values, from }: QueueForm): Html {
  if (fields.length === 0) return html`<p>This workflow takes no variables.</p>`
  const rendered = fields.map((field) => {
    const keepsSecret = field.isSecret && from !== undefined && Object.hasOwn(from.variables, field.name)
    return renderVariableField(field, values.get(field.name) ?? { text: '' }, keepsSecret)
  })
  return html`${rendered}`
}

function renderJson({ json, jsonOnly, from }: QueueForm): Html {
  const hints = [
    jsonOnly === 'noFieldForRun' && 'Shown as JSON because the form has no fields for some of the variables.',
    from && `${mask} stands for the secret of the earlier run.`,
    json.isHidden && `Secrets are never sent back to the browser: replace ${hiddenSecret} with their values.`,
  ]
  const rows = Math.min(24, Math.max(8, json.text.split('\n').length + 1))
  const hint = hints.filter(Boolean).join(' ') || undefined
  return labelledField({ name: 'variables', label: 'Variables', hint, error: json.error }, (common) =>
    textArea(common, json.text, rows),
  )
}

const optionLabels: Record<OptionName, { label: string; hint: string }> = {
  delaySeconds: { label: 'Start delay (seconds)', hint: 'Leave empty to start as soon as a worker is free.' },
  expiresInSeconds: { label: 'Expires after (seconds)', hint: 'A run that has not started by then never starts.' },
  priority: { label: 'Priority', hint: 'From -10 to 10. Runs with a higher priority start first; the default is 0.' },
}

function renderOptions({ options }: QueueForm): Html {
  const names = Object.keys(optionLabels) as OptionName[]
  const isOpen = names.some((name) => options[name].text !== '')
  const fields = names.map((name) => {
    const { min, max } = optionBounds[name]
    const { text, error } = options[name]
    return labelledField(
      { name, ...optionLabels[name], error },
      (common) =>
        html`<input type="number" ${common} value="${text}" min="${min}" max="${max}" step="1" autocomplete="off" />`,
    )
  })
  return html`<details ${attribute('open', isOpen)}><summary>Scheduling</summary>${fields}</details>`
}
