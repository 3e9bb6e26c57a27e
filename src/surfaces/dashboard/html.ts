/** HTML as tagged templates, which escape every value that is not HTML itself. The template library is seen here alone. */
import { html } from 'hono/html'

export { html }

export type Html = ReturnType<typeof html>

/** Nothing, where a template may have something. */
export const nothing = ''

/** Attributes that a template has only when `when` holds. The text is the template's own, never a value. */
export function attributes(when: boolean, text: 'checked' | 'selected' | 'required' | 'disabled' | 'open'): Html | '' {
  if (!when) return nothing
  return {
    checked: html`checked`,
    selected: html`selected`,
    required: html`required`,
    disabled: html`disabled`,
    open: html`open`,
  }[text]
}
