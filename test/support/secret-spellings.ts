/** Spellings of secrets in logs, errors, pages and requests, by the encoders that write them there. */
import querystring from 'node:querystring'
import { inspect } from 'node:util'
import { stringify } from 'yaml'

/** Each has characters that some encoders escape. */
export const secrets = [
  'hunter2-plain',
  "p% [x]\\^{y}|'zzz'",
  'pa"ss\\wô & more',
  'a+b c/d=e?f#g;h:i@j',
  '<tag attr="1">\'&amp;\'</tag>',
  'key🗝öl имя',
  'C:\\dir\\new\\users',
  '%41%zz+1%',
  '\\u0041\\x41\\n\\',
  '"quoted" `ticks` ${value}',
  'tab\tand\u00a0space\u2028line',
  'aHVudGVyMg==/+',
]

const json = JSON.stringify
const inner = (text: string) => json(text).slice(1, -1)
const units = (text: string, spell: (unit: number) => string) =>
  [...Array(text.length).keys()].map((index) => spell(text.charCodeAt(index))).join('')
const characters = (text: string, spell: (code: number) => string) =>
  Array.from(text, (each) => spell(each.codePointAt(0) ?? 0)).join('')
const bytes = (text: string, spell: (byte: number) => string) => [...Buffer.from(text)].map(spell).join('')
const hex = (number: number, length = 2) => number.toString(16).padStart(length, '0')
const lower = (text: string) => text.replace(/%[0-9A-F]{2}/g, (each) => each.toLowerCase())
const html = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const attribute = (text: string) =>
  html(text).replaceAll('"', '&quot;').replaceAll("'", '&#39;').replaceAll('\u00a0', '&nbsp;')
const form = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** A part of an address, as `URL` spells it, which browsers show. */
function inUrl(part: 'pathname' | 'search' | 'hash' | 'username', text: string): string {
  const url = new URL('http://site.example/')
  url[part] = `x${text}x`
  return url[part].replace(/^[/?#]?x|x$/g, '')
}

/** URLs have no tabs: writing them there removes them. */
const inUrls = Object.fromEntries(
  (['pathname', 'search', 'hash', 'username'] as const).map((part) => [
    `a URL's ${part}`,
    (text: string) => (text.includes('\t') ? text : inUrl(part, text)),
  ]),
)

export const spellings: Record<string, (secret: string) => string> = {
  'plain text': (text) => text,
  JSON: inner,
  'JSON in JSON': (text) => inner(inner(text)),
  'JSON of PHP': (text) =>
    units(inner(text).replaceAll('/', '\\/'), (unit) =>
      unit > 126 ? `\\u${hex(unit, 4)}` : String.fromCharCode(unit),
    ),
  'JSON in a script': (text) => inner(text).replace(/[<>&'\u2028]/g, (each) => `\\u${hex(each.charCodeAt(0), 4)}`),
  'util.inspect': (text) => inspect(text).slice(1, -1),
  'util.inspect with other quotes': (text) => inspect([text, "'"]).slice(3, -8),
  'an error of util.inspect': (text) => inspect(new Error(text)).split('\n')[0]?.slice('Error: '.length) ?? '',
  YAML: (text) => stringify(text, { defaultStringType: 'QUOTE_DOUBLE', lineWidth: 0 }).trim().slice(1, -1),
  encodeURIComponent,
  'encodeURIComponent in lower case': (text) => lower(encodeURIComponent(text)),
  encodeURI,
  'encodeURI in lower case': (text) => lower(encodeURI(text)),
  'encodeURIComponent twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  URLSearchParams: form,
  'URLSearchParams in lower case': (text) => lower(form(text)),
  querystring: (text) => querystring.escape(text),
  ...inUrls,
  // Chromium's sets differ from those of the URL standard.
  "Chromium's URLs": (text) =>
    bytes(text.replaceAll('\\', '/'), (byte) =>
      /[%!$&()*+,./0-9:;=@A-Z_a-z~-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${hex(byte).toUpperCase()}`,
    ),
  'all characters percent-encoded': (text) => bytes(text, (byte) => `%${hex(byte)}`),
  'text in HTML': html,
  'an attribute in HTML': attribute,
  'decimal references in HTML': (text) => characters(text, (code) => `&#${code};`),
  'hexadecimal references in HTML': (text) => characters(text, (code) => `&#x${hex(code)};`),
  'Unicode escapes': (text) => units(text, (unit) => `\\u${hex(unit, 4)}`),
  'code point escapes': (text) => characters(text, (code) => `\\u{${hex(code)}}`),
  'hexadecimal escapes': (text) => units(text, (unit) => (unit > 255 ? `\\u${hex(unit, 4)}` : `\\x${hex(unit)}`)),
  hexadecimal: (text) => Buffer.from(text).toString('hex'),
  'hexadecimal in upper case': (text) => Buffer.from(`é${text}`).toString('hex').toUpperCase(),
  Base64: (text) => Buffer.from(text).toString('base64'),
  'Base64 in a form': (text) => form(Buffer.from(`user:${text}`).toString('base64')),
  'JSON in Base64': (text) => Buffer.from(json({ text })).toString('base64url'),
  'JSON in a form': (text) => form(json({ text })).slice('%7B%22text%22%3A%22'.length, -'%22%7D'.length),
  'a form in JSON in HTML': (text) => attribute(inner(form(text))),
  'JSON in an attribute': (text) => attribute(inner(text)),
}
