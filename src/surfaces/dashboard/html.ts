/** HTML as tagged templates that escape every value, and the elements that pages are made of. */
import { html } from 'hono/html'
import { nameLengthMax } from '../../domain/display-names.ts'

export { html }

export type Html = ReturnType<typeof html>

export const nothing = ''

const booleanAttributes = {
  checked: html`checked`,
  selected: html`selected`,
  required: html`required`,
  open: html`open`,
  autofocus: html`autofocus`,
}

export function attribute(name: keyof typeof booleanAttributes, isSet: boolean): Html | '' {
  return isSet ? booleanAttributes[name] : nothing
}

export function heading(title: string, { lead, actions }: { lead?: Html | string; actions?: Html } = {}): Html {
  return html`<div class="heading">
    <div><h1>${title}</h1>${lead ? html`<p class="muted">${lead}</p>` : nothing}</div>
    ${actions ? html`<div class="actions">${actions}</div>` : nothing}
  </div>`
}

export function backLink(path: string, title: string): Html {
  return html`<p class="back"><a href="${path}">← ${title}</a></p>`
}

export type Tone = 'good' | 'bad' | 'busy' | 'waiting' | 'quiet' | 'warning'

/** A status word. The colour adds nothing that the word does not say. */
export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${text}</span>`
}

export function notice(tone: 'good' | 'bad' | 'warning' | 'quiet', content: Html | string): Html {
  return html`<div class="notice ${tone}" role="${tone === 'bad' ? 'alert' : 'status'}">${content}</div>`
}

/** Replaces an empty list: says why it is empty and what to do next. */
export function emptyState(title: string, content: Html | string): Html {
  return html`<section class="empty"><h2>${title}</h2><div>${content}</div></section>`
}

/** Text with a copy button. With `once`, the browser does not show the text again when the user navigates back. */
export function copyable(id: string, text: string, { once = false, label = 'Copy' } = {}): Html {
  return html`<div class="copyable">
    <pre tabindex="0"><code id="${id}" ${once ? html`data-once` : nothing}>${text}</code></pre>
    <button type="button" class="secondary" data-copy="#${id}" aria-label="${label}" hidden>Copy</button>
  </div>`
}

export function copyableId(elementId: string, id: string, label: string): Html {
  return html`<span class="copyable-id"><code id="${elementId}">${id}</code>
    <button type="button" class="quiet" data-copy="#${elementId}" aria-label="${label}" hidden>Copy</button></span>`
}

/** An empty title is for the column of actions. Numbers are aligned at their end. */
type Column = string | { number: string }

/** On a phone, each row becomes a block of labelled values. */
export function table(columns: Column[], rows: (Html | string)[][], caption: string): Html {
  const shown = columns.map((column) =>
    typeof column === 'string'
      ? { title: column, kind: nothing }
      : { title: column.number, kind: html`class="number"` },
  )
  const head = shown.map(
    ({ title, kind }) => html`<th scope="col" ${kind}>${title || html`<span class="unseen">Actions</span>`}</th>`,
  )
  const body = rows.map((cells) => {
    const rendered = cells.map((cell, index) => {
      return html`<td data-title="${shown[index]?.title}" ${shown[index]?.kind}><div>${cell}</div></td>`
    })
    return html`<tr>${rendered}</tr>`
  })
  return html`<div class="table"><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${head}</tr></thead>
    <tbody>${body}</tbody>
  </table></div>`
}

export type Fact = [term: string, value: Html | string]

export function facts(entries: Fact[]): Html {
  return html`<dl class="facts">${entries.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`
}

export interface Field {
  name: string
  label: Html | string
  hint?: Html | string | undefined
  error?: Html | string | undefined
}

interface InputField extends Field {
  value?: string
  type?: 'text' | 'email' | 'password' | 'date'
  required?: boolean
  /** HTML's `autocomplete`; off by default. */
  autocomplete?: string
  /** The keyboard that a phone shows. */
  inputmode?: 'numeric'
  maxlength?: number
  autofocus?: boolean
}

/** A sentence for the person who entered the value. @param detail of a validation error. */
export function toSentence(detail: string): string {
  const [, what = '', count = '', unit = ''] =
    /^must (NOT have fewer than|NOT have more than|be >=|be <=) (\S+)( characters)?/.exec(detail) ?? []
  if (detail === 'must be integer') return 'Enter a whole number.'
  if (what === '') return `This ${detail}.`
  const isMin = what === 'be >=' || what === 'NOT have fewer than'
  return `${unit && !isMin ? 'Use' : 'Enter'} at ${isMin ? 'least' : 'most'} ${count}${unit}.`
}

export function inputField(field: InputField): Html {
  const {
    type = 'text',
    value = '',
    required = false,
    autocomplete = 'off',
    inputmode,
    maxlength,
    autofocus = false,
  } = field
  return labelledField(
    field,
    (common) => html`<input ${common} type="${type}" value="${value}" autocomplete="${autocomplete}"
      ${inputmode ? html`inputmode="${inputmode}"` : nothing} ${maxlength ? html`maxlength="${maxlength}"` : nothing} ${attribute('required', required)} ${attribute('autofocus', autofocus)} />`,
  )
}

export interface Option {
  value: string
  title: string
}

export function selectField(field: Field & { value: string; options: Option[] }): Html {
  const options = field.options.map(
    ({ value, title }) =>
      html`<option value="${value}" ${attribute('selected', value === field.value)}>${title}</option>`,
  )
  return labelledField(field, (common) => html`<select ${common}>${options}</select>`)
}

/** The page that renames an item. `back` is the page to return to. */
export function renamePage(title: string, back: { path: string; title: string }, name: string, error?: string): Html {
  return html`${backLink(back.path, back.title)} ${heading(title)}
    <form method="post" class="card">
      ${inputField({ name: 'name', label: 'Name', value: name, error, required: true, maxlength: nameLengthMax, autofocus: true })}
      <div class="buttons"><button>Rename</button><a href="${back.path}">Cancel</a></div>
    </form>`
}

/** The line break after the tag belongs to HTML's syntax: without it, a leading line break of the text would be lost. */
export function textArea(common: Html, text: string, rows: number): Html {
  return html`<textarea ${common} rows="${rows}" spellcheck="false" autocomplete="off">${'\n'}${text}</textarea>`
}

/**
 * A control with its label, hint and error.
 *
 * @param control renders the control with the given attributes: id, name and those that refer to hint and error.
 */
export function labelledField({ name, label, hint, error }: Field, control: (common: Html) => Html): Html {
  const id = `field-${name.replaceAll(/[^A-Za-z0-9_-]/g, (each) => `_${each.codePointAt(0)}_`)}`
  const describedBy = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ')
  const common = html`id="${id}" name="${name}" ${describedBy ? html`aria-describedby="${describedBy}"` : nothing}
    ${error ? html`aria-invalid="true"` : nothing}`
  return html`<div class="field">
    <label for="${id}">${label}</label>
    ${control(common)}
    ${hint ? html`<small id="${id}-hint">${hint}</small>` : nothing}
    ${error ? html`<small id="${id}-error" class="error">${error}</small>` : nothing}
  </div>`
}
