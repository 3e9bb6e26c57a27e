/** Markdown to HTML: headings that can be linked to, code in colours, tables that scroll by themselves. */
import type { LanguageFn } from 'highlight.js'
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import http from 'highlight.js/lib/languages/http'
import json from 'highlight.js/lib/languages/json'
import plaintext from 'highlight.js/lib/languages/plaintext'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, Renderer, type Tokens } from 'marked'

export interface Section {
  id: string
  title: string
  depth: number
  /** What it says, without marks. */
  text: string
  /** Its first paragraph, without marks. */
  start: string
}

export interface Rendered {
  html: string
  title: string
  /** The first paragraph, without marks. */
  summary: string
  sections: Section[]
}

/** With the aliases that they bring: `sh`, `ts`, `py`, `text`. */
const languages: Record<string, LanguageFn> = { bash, http, json, plaintext, python, typescript, yaml }
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language)

/** @param operationLinks where the reference shows each operation: an operationId that stands as code is a link to it. */
export function renderMarkdown(markdown: string, operationLinks: ReadonlyMap<string, string>): Rendered {
  const ids = new Map<object, string>()
  const marked = new Marked({
    gfm: true,
    renderer: { heading: heading(ids), code, table, link, codespan: codespan(operationLinks) },
  })
  const tokens = marked.lexer(markdown)
  nameHeadings(tokens as Tokens.Generic[], ids)
  const title = tokens.find((token) => token.type === 'heading' && token.depth === 1)
  const summary = tokens.find((token) => token.type === 'paragraph')
  return {
    html: marked.parser(tokens),
    title: plain((title as Tokens.Heading | undefined)?.text ?? ''),
    summary: plain((summary as Tokens.Paragraph | undefined)?.text ?? ''),
    sections: sectionsOf(tokens as Tokens.Generic[], ids),
  }
}

/** Stable as long as the heading's words are; one that comes again is told apart by the section that it stands in. */
function nameHeadings(tokens: Tokens.Generic[], ids: Map<object, string>) {
  const taken = new Set<string>()
  let section = ''
  for (const token of tokens) {
    if (token.type !== 'heading') continue
    const words = idOf(token.text)
    const id = taken.has(words) ? `${section}-${words}` : words
    if (token.depth === 2) section = id
    taken.add(id)
    ids.set(token, id)
  }
}

function sectionsOf(tokens: Tokens.Generic[], ids: ReadonlyMap<object, string>): Section[] {
  const sections: Section[] = []
  for (const token of tokens) {
    if (token.type === 'heading') {
      sections.push({ id: ids.get(token) ?? '', title: plain(token.text), depth: token.depth, text: '', start: '' })
    } else {
      const section = sections.at(-1)
      if (!section || token.type === 'html') continue
      section.text += ` ${plain(token.raw)}`
      if (token.type === 'paragraph') section.start ||= plain(token.raw)
    }
  }
  return sections
}

function idOf(heading: string): string {
  return plain(heading)
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}

/** The words without the marks that set them. */
export function plain(markdown: string): string {
  return markdown
    .replace(/^```.*$|^\|[ |-]+\|$/gm, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\||^[-#>\s]+/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

function heading(ids: ReadonlyMap<object, string>) {
  return function (this: Renderer, token: Tokens.Heading): string {
    const content = this.parser.parseInline(token.tokens)
    const [tag, id] = [`h${token.depth}`, ids.get(token)]
    if (token.depth === 1) return `<${tag} id="${id}">${content}</${tag}>\n`
    return `<${tag} id="${id}"><a class="anchor" href="#${id}">${content}</a></${tag}>\n`
  }
}

function code({ text, lang = '' }: Tokens.Code): string {
  const language = lang.split(' ')[0] || 'text'
  if (!hljs.getLanguage(language))
    throw new Error(`The docs have no colours for code in ${language}; add them to src/surfaces/docs/markdown.ts.`)
  const content = hljs.highlight(text, { language }).value
  // What is wider than the page scrolls, which people without a mouse do with the keyboard.
  return `<pre tabindex="0" data-language="${language}"><code>${content}</code></pre>\n`
}

function table(this: Renderer, token: Tokens.Table): string {
  return `<div class="wide" tabindex="0" role="group" aria-label="Table">${Renderer.prototype.table.call(this, token)}</div>\n`
}

/** Guides link to each other as files, so that the links work where the Markdown is read, too. */
function link(this: Renderer, { href, tokens }: Tokens.Link): string {
  const target = href.replace(/^([a-z-]+)\.md(?=#|$)/, '$1.html')
  return `<a href="${escaped(target)}">${this.parser.parseInline(tokens)}</a>`
}

function codespan(operationLinks: ReadonlyMap<string, string>) {
  return ({ text }: Tokens.Codespan): string => {
    const href = operationLinks.get(text)
    const content = `<code>${escaped(text)}</code>`
    return href === undefined ? content : `<a href="${escaped(href)}">${content}</a>`
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
