/** The parts that pages are made of. */
import { attributes, type Html, html, nothing } from './html.ts'

/** The page's heading, a sentence below it, and what can be done here. */
export function heading(title: string, { lead, actions }: { lead?: Html | string; actions?: Html } = {}): Html {
  return html`<div class="heading">
    <div><h1>${title}</h1>${lead ? html`<p class="lead">${lead}</p>` : nothing}</div>
    ${actions ? html`<div class="actions">${actions}</div>` : nothing}
  </div>`
}

/** The way up from a page. */
export function trail(path: string, title: string): Html {
  return html`<p class="trail"><a href="${path}">← ${title}</a></p>`
}

/** A moment in the reader's time zone; in UTC for a reader without scripts. `relative` says how long ago it was. */
export function moment(at: number | null, style: 'relative' | 'exact' = 'relative', never = 'never'): Html {
  if (at === null) return html`<span class="muted">${never}</span>`
  const iso = new Date(at).toISOString()
  const inUtc = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
  if (style === 'relative') {
    return html`<relative-time datetime="${iso}" threshold="P30D" prefix="" title="${inUtc}">${inUtc}</relative-time>`
  }
  return html`<relative-time datetime="${iso}" format="datetime" weekday="" year="numeric" month="short" day="numeric"
    hour="2-digit" minute="2-digit" second="2-digit" title="${inUtc}">${inUtc}</relative-time>`
}

/** Such as `812 B`, `4.9 KiB` and `5 MiB`, which no line break parts. */
export function byteSize(bytes: number): string {
  if (bytes < 1024) return `${bytes}\u00a0B`
  // Rounded first, so that a byte less than 1 MiB is not told as 1024 KiB.
  const kibibytes = Math.round(bytes / 102.4) / 10
  return kibibytes < 1024 ? `${kibibytes}\u00a0KiB` : `${Math.round(bytes / 104857.6) / 10}\u00a0MiB`
}

export type Tone = 'good' | 'bad' | 'busy' | 'waiting' | 'quiet' | 'warning'

/** A state in a word, with a colour that says no more than the word. */
export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${text}</span>`
}

/** Something that was done, or that is to be known before going on. */
export function notice(tone: 'good' | 'bad' | 'warning' | 'quiet', content: Html | string): Html {
  return html`<div class="notice ${tone}" role="${tone === 'bad' ? 'alert' : 'status'}">${content}</div>`
}

/** What stands where there is nothing yet: why, and what to do next. */
export function emptyState(title: string, content: Html | string): Html {
  return html`<section class="empty"><h2>${title}</h2><div>${content}</div></section>`
}

/** Text that a button copies. `once` is for what must not be shown again when the reader comes back to the page. */
export function copyable(id: string, text: string, { once = false, label = 'Copy' } = {}): Html {
  return html`<div class="copyable">
    <pre tabindex="0"><code id="${id}" ${once ? html`data-once` : nothing}>${text}</code></pre>
    <button type="button" class="secondary" data-copy="#${id}" hidden>${label}</button>
  </div>`
}

export interface Field {
  name: string
  label: Html | string
  value?: string
  hint?: Html | string | undefined
  error?: Html | string | undefined
  type?: 'text' | 'email' | 'password' | 'number' | 'datetime-local' | 'url'
  required?: boolean
  /** As HTML's `autocomplete`. */
  autocomplete?: string
  maxlength?: number
  autofocus?: boolean
}

/** A labelled input with its hint, and its error beside it; the input is kept. */
export function inputField(field: Field): Html {
  const {
    name,
    type = 'text',
    value = '',
    required = false,
    autocomplete = 'off',
    maxlength,
    autofocus = false,
  } = field
  return around(
    field,
    html`<input id="${idOf(name)}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
      ${maxlength ? html`maxlength="${maxlength}"` : nothing} ${attributes(required, 'required')}
      ${autofocus ? html`autofocus` : nothing} ${describedBy(field)} />`,
  )
}

export function textField(field: Field & { rows?: number }): Html {
  const { name, value = '', required = false, rows = 4 } = field
  // The line break after the tag is HTML's own: without it, the first one of the value would be lost.
  return around(
    field,
    html`<textarea id="${idOf(name)}" name="${name}" rows="${rows}" spellcheck="false"
      ${attributes(required, 'required')} ${describedBy(field)}>${'\n'}${value}</textarea>`,
  )
}

export function selectField(field: Field & { options: { value: string; title: string }[] }): Html {
  const { name, value = '', options } = field
  const shown = options.map(
    (each) =>
      html`<option value="${each.value}" ${attributes(each.value === value, 'selected')}>${each.title}</option>`,
  )
  return around(field, html`<select id="${idOf(name)}" name="${name}" ${describedBy(field)}>${shown}</select>`)
}

function idOf(name: string): string {
  return `field-${name.replaceAll(/[^A-Za-z0-9_-]/g, (each) => `_${each.codePointAt(0)}_`)}`
}

function around(field: Field, input: Html): Html {
  const id = idOf(field.name)
  return html`<div class="field">
    <label for="${id}">${field.label}</label>
    ${input}
    ${field.hint ? html`<small id="${id}-hint">${field.hint}</small>` : nothing}
    ${field.error ? html`<small id="${id}-error" class="error">${field.error}</small>` : nothing}
  </div>`
}

function describedBy({ name, hint, error }: Field): Html | '' {
  const id = idOf(name)
  const ids = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ')
  return html`${ids ? html`aria-describedby="${ids}"` : nothing} ${error ? html`aria-invalid="true"` : nothing}`
}

/** Rows with their column's title; on a phone each row stands by itself. An empty title is for the actions' column. */
export function table(columns: string[], rows: (Html | string)[][], caption: string): Html {
  const head = columns.map((title) => html`<th scope="col">${title || html`<span class="unseen">Actions</span>`}</th>`)
  const body = rows.map(
    (cells) =>
      html`<tr>${cells.map((cell, index) => html`<td data-title="${columns[index] ?? ''}"><div>${cell}</div></td>`)}</tr>`,
  )
  return html`<div class="table"><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${head}</tr></thead>
    <tbody>${body}</tbody>
  </table></div>`
}

/** Terms and what they are. */
export function facts(entries: [term: string, value: Html | string][]): Html {
  return html`<dl class="facts">${entries.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** A labelled control of another kind. It is given its id and name, and what describes it. */
export function labelledField(field: Field, control: (given: Html) => Html): Html {
  return around(field, control(html`id="${idOf(field.name)}" name="${field.name}" ${describedBy(field)}`))
}
