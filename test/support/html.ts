/** Pages of HTML as people use them: things are found by role, label and text, and forms by the names that they send. */
import { within } from '@testing-library/dom'
import { JSDOM } from 'jsdom'

/** A response, or a part of it. */
export interface Markup {
  text: string
}

const parser = new new JSDOM().window.DOMParser()

export function readDocument({ text }: Markup): Document {
  return parser.parseFromString(text, 'text/html')
}

/** Queries of Testing Library on the page, such as `getByRole`. What people cannot perceive is not found by role. */
export function find({ text }: Markup) {
  return within(new JSDOM(text).window.document.body)
}

/** Returns the text of a page or an element, with a space between elements. */
export function pageText(page: Markup | Element): string {
  // Of a page, without a DOM: tests poll pages, and parsing all of them takes a fifth of the tests' CPU time.
  const texts = 'nodeType' in page ? textsOf(page) : page.text.split(/<[^>]*>/).map(unescapeHtml)
  return texts.join(' ').replaceAll(/\s+/g, ' ')
}

function textsOf(node: Node): string[] {
  if (node.nodeType === 3) return [node.nodeValue ?? '']
  return [...node.childNodes].flatMap(textsOf)
}

function unescapeHtml(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" }
  return text.replaceAll(/&(lt|gt|quot|amp|#39);/g, (_, name) => named[name] ?? '')
}

/** Returns the text of each row of the page's tables, without headers. */
export function readRows(page: Markup): string[] {
  return [...readDocument(page).querySelectorAll('tbody tr')].map((row) => pageText(row).trim())
}

/** Returns the paths of the links with this name. */
export function linkPaths(page: Markup, name: string | RegExp): string[] {
  return find(page)
    .queryAllByRole('link', { name })
    .map((link) => link.getAttribute('href') ?? '')
}

/** Returns the control that is sent with this name; with a value, the one of several that has it. */
export function control(page: Markup, name: string, value?: string): HTMLInputElement | undefined {
  const named = [...readDocument(page).getElementsByName(name)] as HTMLInputElement[]
  return named.find((each) => value === undefined || each.value === value)
}

/** Returns the value of the input, text area or selection that is sent with this name. */
export function inputValue(page: Markup, name: string): string | undefined {
  return control(page, name)?.value
}

/** Returns the error message of the control with this name. */
export function fieldError(page: Markup, name: string): string | undefined {
  const field = control(page, name)
  const ids = field?.getAttribute('aria-describedby')?.split(' ') ?? []
  const described = ids.map((id) => field?.ownerDocument.getElementById(id))
  return described.find((each) => each?.classList.contains('error'))?.textContent ?? undefined
}

/** Returns what the button with this label copies. It is hidden until scripts run, so it has no role here. */
export function copied(page: Markup, button: string): string | undefined {
  const selector = find(page).queryByLabelText(button, { selector: 'button' })?.dataset.copy
  return selector === undefined ? undefined : (readDocument(page).querySelector(selector)?.textContent ?? undefined)
}
