/** What the form that queues a run looks like. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { labelledField, moment, notice } from '../elements.ts'
import { attributes, type Html, html, nothing } from '../html.ts'
import { shortId } from '../runs/run-labels.ts'
import { browserFields } from './browser-choice.ts'
import { misfitSentence } from './entries.ts'
import { variableField } from './field-view.ts'
import { putInAgain } from './json-text.ts'
import { type OptionName, optionBounds } from './options.ts'
import type { QueueForm } from './queue-form.ts'

/** @param contexts the browser contexts that can be chosen. */
export function queueFormView(form: QueueForm, refusal: string, contexts: readonly BrowserContext[]): Html {
  const { workflow, as, from, key, misfits, browser } = form
  const path = `/workflows/${workflow.id}${as === 'json' ? '?as=json' : ''}`
  return html`${refusal ? notice('bad', html`${refusal}${misfits.map((misfit) => html`<br />${misfitSentence(misfit)}`)}`) : nothing}
    <form method="post" action="${path}" class="card" id="queue">
      <div class="form-head"><h2>${from ? 'Run it again' : 'Run it'}</h2>${otherWay(form)}</div>
      ${from ? html`<p class="muted">With the variables of run <a href="/runs/${from.id}"><code>${shortId(from.id)}</code></a>, queued ${moment(from.createdAt)}.</p>` : nothing}
      <input type="hidden" name="key" value="${key}" />
      ${from ? html`<input type="hidden" name="from" value="${from.id}" />` : nothing}
      ${as === 'json' ? jsonField(form) : fieldsPart(form)}
      ${workflow.usesBrowser ? browserFields(browser, contexts) : nothing} ${optionsPart(form)}
      <div class="buttons"><button>Queue run</button></div>
    </form>`
}

/** The link to the other way of putting variables in. It forgets what stands in the form. */
function otherWay({ workflow, as, onlyJson, from, browser: { contextId } }: QueueForm): Html | '' {
  if (onlyJson) return nothing
  const query = new URLSearchParams({
    ...(from && { from: from.id }),
    ...(contextId !== '' && { browserContextId: contextId }),
    ...(as === 'fields' && { as: 'json' }),
  })
  const path = `/workflows/${workflow.id}${query.size > 0 ? `?${query}` : ''}`
  return html`<a href="${path}">${as === 'json' ? 'Fields' : 'All as JSON'}</a>`
}

function fieldsPart({ fields, entries, from }: QueueForm): Html {
  if (fields.length === 0) return html`<p>It takes no variables.</p>`
  const shown = fields.map((field) => {
    const isKept = field.isSecret && from !== undefined && Object.hasOwn(from.variables, field.name)
    return variableField(field, entries.get(field.name) ?? { text: '' }, isKept)
  })
  return html`${shown}`
}

function jsonField({ json, onlyJson, from }: QueueForm): Html {
  const hints = [
    ...(onlyJson === 'noFieldForRun' ? ['As JSON, since the form has no field for some of them.'] : []),
    ...(from ? ['Where ******** stands, the secret of that run is used.'] : []),
    ...(json.isHidden ? [`Secrets are not sent back to you: put them in where ${putInAgain} stands.`] : []),
  ]
  const rows = Math.min(24, Math.max(8, json.text.split('\n').length + 1))
  const { error } = json
  return labelledField(
    { name: 'variables', label: 'Variables', hint: hints.join(' ') || undefined, error },
    (given) =>
      html`<textarea ${given} rows="${rows}" spellcheck="false" autocomplete="off">${'\n'}${json.text}</textarea>`,
  )
}

const optionWords: Record<OptionName, { label: string; hint: string }> = {
  delaySeconds: {
    label: 'Start after, in seconds',
    hint: 'It starts no sooner. Left empty, it starts as soon as a worker is free.',
  },
  expiresInSeconds: { label: 'Expire after, in seconds', hint: 'If it has not started by then, it never does.' },
  priority: {
    label: 'Priority',
    hint: 'From -10 to 10. Of the runs that are ready, the one with the highest starts first; 0 is usual.',
  },
}

function optionsPart({ options }: QueueForm): Html {
  const names = Object.keys(optionWords) as OptionName[]
  const isOpen = names.some((name) => options[name].text !== '')
  const fields = names.map((name) => {
    const { min, max } = optionBounds[name]
    const { text, error } = options[name]
    return labelledField(
      { name, ...optionWords[name], error },
      (given) =>
        html`<input type="number" ${given} value="${text}" min="${min}" max="${max}" step="1" autocomplete="off" />`,
    )
  })
  return html`<details ${attributes(isOpen, 'open')}><summary>When it starts</summary>${fields}</details>`
}
