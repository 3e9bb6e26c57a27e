/**
 * Builds the search index: one entry for each section of a guide, setting, and operation. `assets/search-query.js` answers
 * questions with it.
 */
import MiniSearch, { type Options } from 'minisearch'
import { toMembers } from '../../domain/workflows/example-values.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Contract } from './contracts.ts'
import type { Guide } from './guides.ts'
import { plainText } from './markdown.ts'

interface Entry {
  id: number
  title: string
  /** The operationId, whole and split into words, so that an operation ranks above a section with the same title. */
  name: string
  /** The guide's title, or the operation's method and path. */
  place: string
  href: string
  excerpt: string
  keywords: string
  text: string
}

const options: Options<Entry> = {
  fields: ['title', 'name', 'place', 'keywords', 'text'],
  storeFields: ['title', 'place', 'href', 'excerpt'],
  searchOptions: { boost: { title: 4, name: 4, keywords: 4, place: 2 } },
}

/** The index as a script, because a page opened as a file cannot fetch data. */
export function searchScript(guides: readonly Guide[], contracts: readonly Contract[]): string {
  return `globalThis.docsIndex = ${indexOf([...guides.flatMap(sectionEntries), ...contracts.flatMap(operationEntries)])}\n`
}

/** The index of an account's workflows: one entry for each. */
export function workflowSearchScript(workflows: readonly Workflow[]): string {
  return `globalThis.workflowsIndex = ${indexOf(workflows.map(workflowEntry))}\n`
}

function indexOf(entries: NewEntry[]): string {
  const search = new MiniSearch<Entry>(options)
  search.addAll(entries.map((entry, id) => ({ ...entry, id })))
  return JSON.stringify({ options, index: JSON.stringify(search) })
}

type NewEntry = Omit<Entry, 'id'>

function workflowEntry({ id, title, description, variables }: Workflow): NewEntry {
  return {
    title,
    name: `${id} ${id.replace(/[._-]+/g, ' ')}`,
    place: 'Workflow',
    href: `workflows/${id}`,
    excerpt: (description ?? '').slice(0, excerptLength),
    keywords: '',
    text: `${description ?? ''} ${Object.keys(toMembers(variables.properties)).join(' ')}`,
  }
}

const excerptLength = 160

function sectionEntries(guide: Guide): NewEntry[] {
  const { name, title, sections } = guide
  const entries = sections.map((section) => ({
    title: section.title,
    name: '',
    place: section.depth === 1 ? 'Guide' : title,
    href: section.depth === 1 ? `${name}.html` : `${name}.html#${section.id}`,
    excerpt: section.excerpt.slice(0, excerptLength),
    keywords: section.keywords,
    text: section.text,
  }))
  return [...entries, ...settingEntries(guide)]
}

/** Each row of a table of environment variables, so that the name of one finds its meaning. */
function settingEntries({ name, title, markdown }: Guide): NewEntry[] {
  const rows = markdown.matchAll(/^\| `([A-Z]+(?:_[A-Z]+)*)` \| [^|]*\| (.+) \|$/gm)
  return [...rows].map(([, variable = '', meaning = '']) => ({
    title: variable,
    name: '',
    place: title,
    href: `${name}.html`,
    excerpt: plainText(meaning).slice(0, excerptLength),
    keywords: '',
    text: plainText(meaning),
  }))
}

function operationEntries({ title, operations }: Contract): NewEntry[] {
  return operations.map((each) => ({
    title: each.summary,
    name: `${each.id} ${each.id.replace(/[A-Z]/g, ' $&')}`,
    place: `${title} · ${each.method.toUpperCase()} ${each.path}`,
    href: each.href,
    excerpt: plainText(each.description).slice(0, excerptLength),
    keywords: '',
    text: `${each.description} ${each.parameterNames.join(' ')}`,
  }))
}
