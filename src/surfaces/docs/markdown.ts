/** Renders Markdown to HTML: linkable headings, highlighted code, tables that scroll, links to operations. */
import type { LanguageFn } from 'highlight.js'
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import http from 'highlight.js/lib/languages/http'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import plaintext from 'highlight.js/lib/languages/plaintext'
import python from 'highlight.js/lib/languages/python'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, Renderer, type RendererObject, type Tokens } from 'marked'

export interface Section {
  id: string
  title: string
  depth: number
  /** Plain text. */
  text: string
  /** The first paragraph as plain text. */
  excerpt: string
  /** Search terms from `<!-- keywords: … -->`. */
  keywords: string
}

export interface Rendered {
  html: string
  title: string
  /** The first paragraph as plain text. */
  summary: string
  sections: Section[]
}

/** Each also registers its aliases, such as `sh`, `ts`, `py` and `text`. */
const languages: Record<string, LanguageFn> = {
  bash,
  dockerfile,
  http,
  ini,
  json,
  plaintext,
  python,
  sql,
  typescript,
  yaml,
}
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language)

/** @param codeLinks by text: an operationId or the name of a served file in backticks becomes a link. */
export function renderGuide(markdown: string, codeLinks: ReadonlyMap<string, string>): Rendered {
  return render(markdown, { code: guideCode, codespan: codespan(codeLinks) })
}

/** Renders a page with texts of workflows: HTML is shown as text, and an image as its alternative text. */
export function renderWorkflowPage(markdown: string): Rendered {
  const asText = ({ text }: { text: string }) => escapeHtml(text)
  return render(markdown, { code, codespan: codespan(new Map()), html: asText, image: asText, text })
}

function render(markdown: string, renderer: RendererObject): Rendered {
  const ids = new Map<object, string>()
  const marked = new Marked({ gfm: true, renderer: { heading: heading(ids), table, link, ...renderer } })
  const tokens = marked.lexer(markdown)
  assignIds(tokens as Tokens.Generic[], ids)
  const title = tokens.find((token) => token.type === 'heading' && token.depth === 1)
  const summary = tokens.find((token) => token.type === 'paragraph')
  return {
    html: marked.parser(tokens),
    title: plainText((title as Tokens.Heading | undefined)?.text ?? ''),
    summary: plainText((summary as Tokens.Paragraph | undefined)?.text ?? ''),
    sections: readSections(tokens as Tokens.Generic[], ids),
  }
}

/** Derives ids from the headings' text. A repeated heading is prefixed with the id of its section, and numbered. */
function assignIds(tokens: Tokens.Generic[], ids: Map<object, string>) {
  const used = new Set<string>()
  let section = ''
  for (const token of tokens) {
    if (token.type !== 'heading') continue
    const slug = slugify(token.text)
    let id = slug
    for (let count = 1; used.has(id); count++) id = `${section}-${slug}${count > 1 ? `-${count}` : ''}`
    if (token.depth === 2) section = id
    used.add(id)
    ids.set(token, id)
  }
}

function readSections(tokens: Tokens.Generic[], ids: ReadonlyMap<object, string>): Section[] {
  const sections: Section[] = []
  for (const token of tokens) {
    if (token.type === 'heading') {
      const title = plainText(token.text)
      sections.push({ id: ids.get(token) ?? '', title, depth: token.depth, text: '', excerpt: '', keywords: '' })
      continue
    }
    const section = sections.at(-1)
    if (!section) continue
    if (token.type === 'html') {
      section.keywords += /^<!-- keywords: (.*) -->/.exec(token.raw)?.[1] ?? ''
      continue
    }
    section.text += ` ${plainText(token.raw)}`
    if (token.type === 'paragraph') section.excerpt ||= plainText(token.raw)
  }
  return sections
}

function slugify(heading: string): string {
  return plainText(heading)
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}

export function plainText(markdown: string): string {
  const text = markdown
    .replace(/^```.*$|^\|[ |-]+\|$/gm, '')
    .replace(/\[([^[\]]*)\]\([^)]{0,2000}\)/g, '$1')
    .replace(/(?<!\\)[`*]/g, '')
    .replace(/(?<!\\)\||^[-#>\s]+/gm, ' ')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
  return text.replaceAll('&#96;', '`').replaceAll('&lt;', '<').replaceAll('&amp;', '&').replace(/\s+/g, ' ').trim()
}

function heading(ids: ReadonlyMap<object, string>) {
  return function (this: Renderer, token: Tokens.Heading): string {
    const content = this.parser.parseInline(token.tokens)
    const [tag, id] = [`h${token.depth}`, ids.get(token)]
    if (token.depth === 1) return `<${tag} id="${id}">${content}</${tag}>\n`
    return `<${tag} id="${id}"><a class="anchor" href="#${id}">${content}</a></${tag}>\n`
  }
}

function guideCode(token: Tokens.Code): string {
  const { lang = '' } = token
  if (lang !== '' && !hljs.getLanguage(languageOf(lang)))
    throw new Error(`No highlighter for code in ${lang}: add it to src/surfaces/docs/markdown.ts.`)
  return code(token)
}

function languageOf(lang: string): string {
  return lang.split(/\s/)[0] ?? ''
}

function code({ text, lang = '' }: Tokens.Code): string {
  const language = hljs.getLanguage(languageOf(lang)) ? languageOf(lang) : 'text'
  const content = hljs.highlight(text, { language }).value
  // The tabindex lets keyboard users scroll wide code.
  return `<pre tabindex="0" data-language="${language}"><code>${content}</code></pre>\n`
}

function table(this: Renderer, token: Tokens.Table): string {
  return `<div class="wide" tabindex="0" role="group" aria-label="Table">${Renderer.prototype.table.call(this, token)}</div>\n`
}

/** Guides link to each other as `name.md`, so that the links also work in the repository. */
function link(this: Renderer, { href, tokens }: Tokens.Link): string {
  const target = href.replace(/^((?:\.\.\/)?[a-z-]+)\.md(?=#|$)/, '$1.html')
  // Authors of workflows write Markdown too: `javascript:` and other schemes stay text.
  if (/^[a-z][a-z0-9+.-]*:/i.test(target) && !/^(https?|mailto):/i.test(target)) return this.parser.parseInline(tokens)
  return `<a href="${escapeHtml(target)}">${this.parser.parseInline(tokens)}</a>`
}

/** Marked passes text on as HTML where a `<pre>` or `<script>` precedes it. */
function text(this: Renderer, token: Tokens.Text | Tokens.Escape): string {
  return Renderer.prototype.text.call(this, { ...token, escaped: false } as Tokens.Text)
}

function codespan(codeLinks: ReadonlyMap<string, string>) {
  return ({ text }: Tokens.Codespan): string => {
    const href = codeLinks.get(text)
    const content = `<code>${escapeHtml(text)}</code>`
    return href === undefined ? content : `<a href="${escapeHtml(href)}">${content}</a>`
  }
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
