/** The guides of docs/guides: their order, the tables inserted from the documents, and their HTML. */
import { readdirSync, readFileSync } from 'node:fs'
import { type Contract, decisionsOf, transitionsOf, withAddresses } from './contracts.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

export interface Guide extends Rendered {
  name: string
  group: string
  /** The source with tables and addresses inserted. */
  markdown: string
}

/** In the order of the pages. A guide that is not listed is added at the end. */
const groups: Record<string, string[]> = {
  Start: [
    'index',
    'quick-start',
    'writing-workflows',
    'your-own-project',
    'deploying-workflows',
    'workflow-docs',
    'authentication',
  ],
  Runs: [
    'run-life-cycle',
    'following-a-run',
    'webhooks',
    'idempotency-and-retries',
    'pagination',
    'scheduling',
    'browser-contexts',
  ],
  Contract: ['errors', 'limits', 'versioning', 'changes', 'decisions'],
  Tools: ['client', 'mcp', 'mock'],
  Operations: ['running-in-production'],
}

const lastGroup = 'Operations'
const directory = new URL('../../../docs/guides/', import.meta.url)

export function readGuides(contracts: readonly Contract[]): Guide[] {
  const links = new Map(
    contracts.flatMap(({ page, operations }) =>
      operations.map(({ id, anchor }) => [id, `${page}.html#${anchor}`] as const),
    ),
  )
  const inserts: Record<string, string> = {
    transitions: transitionTable(contracts),
    decisions: contracts.map(decisionTable).join('\n\n'),
  }
  return orderedNames().map(({ name, group }) => {
    const source = withAddresses(readFileSync(new URL(`${name}.md`, directory), 'utf8'), contracts)
    const markdown = source.replace(/^<!-- (\w+) -->$/gm, (comment, insert: string) => inserts[insert] ?? comment)
    return { ...renderMarkdown(markdown, links), name, group, markdown }
  })
}

function orderedNames(): { name: string; group: string }[] {
  const present = readdirSync(directory).flatMap((file) => (file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : []))
  const listed = Object.entries(groups).flatMap(([group, names]) => names.map((name) => ({ name, group })))
  const others = present.filter((name) => !listed.some((each) => each.name === name))
  const ordered = [...listed, ...others.sort().map((name) => ({ name, group: lastGroup }))]
  return ordered.filter(({ name }) => present.includes(name))
}

function transitionTable(contracts: readonly Contract[]): string {
  const rows = contracts.flatMap(transitionsOf).map(({ from, to, when }) => `| \`${from}\` | \`${to}\` | ${when} |`)
  return ['| from | to | when |', '| --- | --- | --- |', ...rows].join('\n')
}

function decisionTable(contract: Contract): string {
  const rows = decisionsOf(contract).map(({ place, reason }) => `| ${place} | ${reason} |`)
  return [`## ${contract.title}`, '', '| place | reason |', '| --- | --- |', ...rows].join('\n')
}
