/** Texts that try to become markup, and the grammar of the markup that pages of workflows may have. */
import { expect } from 'vitest'

const markup = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<style>*{display:none}</style>',
  '</title><svg onload=alert(1)>',
  '<pre><img src=x onerror=alert(1) ',
  '<a href="javascript:alert(1)">x</a>',
  '<!-- <b> -->',
  '<![CDATA[<b>]]>',
  '<form action=/sign-out><button>x',
  '&lt;b&gt;&#60;b&#62;',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1) "onmouseover=alert(1)")',
  '[x](data:text/html,<b>)',
  '[x](&#106;avascript:alert(1))',
  '[x](/sign-out" onclick="alert(1))',
  '![x](https://example.com/x.png" onerror="alert(1))',
  '![<b>](x)',
  '[x]: javascript:alert(1)\n\n[x]',
  '<javascript:alert(1)>',
  '<https://example.com/"onclick=alert(1)>',
]

/** What may end a formatting early, or begin one that does not end. */
const before = [
  '',
  '`',
  '``',
  '` `` ',
  '\\`',
  'a | b \\| ',
  '\n\n',
  '```\n',
  '```nothing\n',
  '~~~ "><b>\n',
  '> - 1. ',
  '**_~~[',
]

const others = [
  '# Output\n## Variables\nSetext\n===',
  '| a | b |\n| --- | --- |\n| c | d |',
  '\\',
  '\\|',
  '\\\\|',
  '|',
  ' ',
  ' a ',
  '`',
  '``````',
  '```constructor\nx',
  '```__proto__ x\n',
  '{{title}} {{article}}',
  '$& $1 $`',
  '\u0000\u202e\u2028\u2029\r\n',
  '>'.repeat(20_000),
  '- '.repeat(3000),
  '[('.repeat(5000),
  '*a_b'.repeat(20_000),
]

export const hostileTexts = [
  ...others,
  ...before.flatMap((prefix) => markup.map((text, index) => prefix + text + (index % 2 === 0 ? '' : ' `'))),
]

const tags =
  'p|ul|ol|ol start="\\d+"|li|blockquote|table|thead|tbody|tr|t[hd]|t[hd] align="\\w+"|code|em|strong|del|br|hr|span class="hljs-[\\w -]+"'
const attribute = '[^"<>]*'
const openings = [
  `(?:${tags})`,
  `h[1-6] id="${attribute}"`,
  `a class="anchor" href="#${attribute}"`,
  // Links of authors have a scheme that runs nothing, or none.
  `a href="(?:(?:https?|mailto):|(?![a-z0-9+.-]*:))${attribute}"`,
  'pre tabindex="0" data-language="\\w+"',
  'div class="wide" tabindex="0" role="group" aria-label="Table"',
  'input checked="" disabled="" type="checkbox"',
  'input disabled="" type="checkbox"',
]
const markupOfPages = new RegExp(`<(?:${openings.join('|')}|/(?:${tags}|h[1-6]|a|pre|div|span))>`, 'gi')

/** Expects that each `<` begins a tag that the renderer writes, with the attributes that it writes. */
export function expectOnlyKnownMarkup(html: string, text: string): void {
  const rest = html.replaceAll(markupOfPages, '')
  expect([text, /.{0,40}<.{0,80}/s.exec(rest)?.[0]]).toEqual([text, undefined])
}
