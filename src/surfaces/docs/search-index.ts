/** The index of the docs' search, made when the site is built: a guide's sections, and the operations. */
import MiniSearch, { type Options } from 'minisearch'
import type { Contract, ContractOperation } from './contracts.ts'
import type { Guide } from './guides.ts'
import { plain } from './markdown.ts'

interface Entry {
  id: number
  title: string
  /** The operationId, whole and in its words, so that an operation comes before a section of the same title. */
  name: string
  /** Where it stands: the guide's title, or the operation's method and path. */
  place: string
  href: string
  excerpt: string
  text: string
}

const options: Options<Entry> = {
  fields: ['title', 'name', 'place', 'text'],
  storeFields: ['title', 'place', 'href', 'excerpt'],
  searchOptions: { boost: { title: 4, name: 4, place: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
}

/** A script and not data, because a page that was opened as a file may load nothing else. */
export function searchScript(guides: readonly Guide[], contracts: readonly Contract[]): string {
  const search = new MiniSearch<Entry>(options)
  const entries = [...guides.flatMap(sectionEntries), ...contracts.flatMap(operationEntries)]
  search.addAll(entries.map((entry, id) => ({ ...entry, id })))
  return `globalThis.docsIndex = ${JSON.stringify({ options, index: JSON.stringify(search) })}\n`
}

type NewEntry = Omit<Entry, 'id'>

const excerptLength = 160

function sectionEntries({ name, title, sections }: Guide): NewEntry[] {
  return sections.map((section) => ({
    title: section.title,
    name: '',
    place: section.depth === 1 ? 'Guide' : title,
    href: section.depth === 1 ? `${name}.html` : `${name}.html#${section.id}`,
    excerpt: section.start.slice(0, excerptLength),
    text: section.text,
  }))
}

function operationEntries({ page, title, operations }: Contract): NewEntry[] {
  return operations.map((each) => ({
    title: each.summary,
    name: `${each.id} ${each.id.replace(/[A-Z]/g, ' $&')}`,
    place: `${title} · ${each.method.toUpperCase()} ${each.path}`,
    href: `${page}.html#${each.anchor}`,
    excerpt: plain(each.description).slice(0, excerptLength),
    text: `${each.description} ${namesIn(each)}`,
  }))
}

/** Parameters are looked for by their names. */
function namesIn({ operation }: ContractOperation): string {
  const parameters = (operation.parameters ?? []) as { name?: string; $ref?: string }[]
  return parameters.map(({ name, $ref }) => name ?? $ref?.split('/').at(-1) ?? '').join(' ')
}
