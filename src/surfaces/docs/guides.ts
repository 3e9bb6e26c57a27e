/** The guides: in which order they are read, what is put into them when the site is built, and what they say in HTML. */
import { readdirSync, readFileSync } from 'node:fs'
import { addressed, type Contract, decisionsOf, type Transition, transitionsOf } from './contracts.ts'
import { runDiagram } from './diagram.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

export interface Guide extends Rendered {
  name: string
  group: string
  /** As it is served, with everything put in that can be said in Markdown. */
  markdown: string
}

/** What the pages are ordered by; a guide that is not named here stands at the end. */
const groups: Record<string, string[]> = {
  Start: ['index', 'quick-start', 'authentication'],
  Runs: ['run-life-cycle', 'following-a-run', 'idempotency-and-retries', 'browser-contexts'],
  Contract: ['errors', 'limits', 'versioning', 'changes', 'decisions'],
  Tools: ['client', 'mock'],
}

const lastGroup = 'Tools'
const directory = new URL('../../../docs/guides/', import.meta.url)

export function readGuides(contracts: readonly Contract[]): Guide[] {
  const links = operationLinks(contracts)
  const execution = contracts.find(({ page }) => page === 'execution')
  if (!execution) throw new Error('The docs need the document of the Execution API.')
  const transitions = transitionsOf(execution)
  const inserts: Record<string, string> = {
    transitions: transitionTable(transitions),
    decisions: contracts.map(decisionTable).join('\n\n'),
  }
  return orderedNames().map(({ name, group }) => {
    const source = addressed(readFileSync(new URL(`${name}.md`, directory), 'utf8'), contracts)
    const markdown = source.replace(/^<!-- (\w+) -->$/gm, (mark, what: string) => inserts[what] ?? mark)
    const rendered = renderMarkdown(markdown, links)
    const html = rendered.html.replace('<!-- diagram -->', runDiagram(transitions))
    return { ...rendered, html, name, group, markdown: markdown.replace('<!-- diagram -->\n\n', '') }
  })
}

function orderedNames(): { name: string; group: string }[] {
  const present = readdirSync(directory).flatMap((file) => (file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : []))
  const named = Object.entries(groups).flatMap(([group, names]) => names.map((name) => ({ name, group })))
  const others = present.filter((name) => !named.some((each) => each.name === name))
  const ordered = [...named, ...others.sort().map((name) => ({ name, group: lastGroup }))]
  return ordered.filter(({ name }) => present.includes(name))
}

function operationLinks(contracts: readonly Contract[]): Map<string, string> {
  const links = contracts.flatMap(({ page, operations }) =>
    operations.map(({ id, anchor }) => [id, `${page}.html#${anchor}`] as const),
  )
  return new Map(links)
}

function transitionTable(transitions: readonly Transition[]): string {
  const rows = transitions.map(({ from, to, when }, index) => `| ${index + 1} | \`${from}\` | \`${to}\` | ${when} |`)
  return ['| # | from | to | when |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function decisionTable(contract: Contract): string {
  const rows = decisionsOf(contract).map(({ place, reason }) => `| ${place} | ${reason} |`)
  return [`## ${contract.title}`, '', '| place | reason |', '| --- | --- |', ...rows].join('\n')
}
