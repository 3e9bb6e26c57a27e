/**
 * Texts of workflows as Markdown that cannot change what surrounds it. A text is escaped before it is formatted, so that
 * HTML stays text and no code span, fence or row of a table ends early.
 */

/** Longer or more deeply nested Markdown is shown as text: the time that some takes to parse grows with its square. */
const lengthMax = 10_000
const deeplyNested = /^(?:[ \t]*(?:[>*+-]|\d+[.)])){8}/m

/** A description as paragraphs, lists and code. Descriptions are Markdown, as in OpenAPI, but without HTML. */
export function paragraphs(markdown: string): string {
  const text = withoutControls(markdown.replaceAll(/\r\n?/g, '\n'))
  if (text.length > lengthMax || deeplyNested.test(text)) return plain(text).replace(/^(\d*)([-+>.)])/, '$1\\$2')
  return closeFence(escapeHtml(text))
}

/** A description within a line. */
export function sentence(markdown: string): string {
  const text = withoutControls(markdown).replaceAll(/\s+/g, ' ').trim()
  if (text.length > lengthMax) return plain(text)
  // A run of backticks without a partner would open a code span that ends at the first one of the text that follows.
  return escapeHtml(text).replaceAll(/(?<!`)(`+)(?!`)(?:.*?[^`])\1(?!`)|`+/g, (all, closed?: string) =>
    closed ? all : all.replaceAll('`', '&#96;'),
  )
}

/** Text without formatting, within a line. */
export function plain(text: string): string {
  return escapeHtml(withoutControls(text))
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\\`*_[\]#~]/g, '\\$&')
}

/** A code span. Line breaks and other control characters are shown as escapes. */
export function code(text: string): string {
  const shown = text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (control) => {
    return control === '\n' ? '\\n' : `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  // In a table, no code span can hold a backslash before a vertical bar, nor anywhere nothing or only spaces.
  if (/(?<!\\)(?:\\\\)*\\\|/.test(shown) || shown.trim() === '') return plain(shown) || '(empty)'
  // A code span ends with as many backticks as it begins with (CommonMark, section 6.1).
  const marks = '`'.repeat(longestRun(shown, '`') + 1)
  const padding = /^`|`$|^ .* $/.test(shown) ? ' ' : ''
  return marks + padding + shown + padding + marks
}

/** A code block whose fence is longer than any in the text. */
export function fence(language: string, text: string): string {
  const marks = '`'.repeat(Math.max(3, longestRun(text, '`') + 1))
  return `${marks}${language}\n${text}\n${marks}`
}

/** Markdown as the cell of a table. An odd number of backslashes already escapes the bar after them. */
export function cell(markdown: string): string {
  return markdown
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(\\*)\|/g, (all, { length }: string) => (length % 2 === 1 ? all : `${'\\'.repeat(length)}\\|`))
    .replace(/\\$/, '\\\\')
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

function withoutControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '\uFFFD')
}

function longestRun(text: string, character: string): number {
  return Math.max(0, ...[...text.matchAll(new RegExp(`${character}+`, 'g'))].map(([run]) => run.length))
}

/** Ends a code block that the text leaves open, which would hide what follows. */
function closeFence(text: string): string {
  let open: string | undefined
  for (const line of text.split('\n')) {
    const marks = /^[\s>]*(`{3,}|~{3,})(.*)$/.exec(line)
    if (!marks) continue
    const [, run = '', info = ''] = marks
    if (open === undefined) open = run[0] === '`' && info.includes('`') ? undefined : run
    else if (run.startsWith(open) && info.trim() === '') open = undefined
  }
  return open === undefined ? text : `${text}\n${open}`
}
