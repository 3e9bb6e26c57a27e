/** The guides of docs/guides and docs: their order, the tables inserted from the documents, and their HTML. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type Contract, decisionsOf, transitionsOf, withAddresses } from './contracts.ts'
import { type Rendered, renderGuide } from './markdown.ts'

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
    'files',
    'secrets-and-settings',
    'runs-that-wait',
    'your-own-project',
    'packages',
    'deploying-workflows',
    'environments',
    'workflow-docs',
    'authentication',
  ],
  Runs: [
    'run-life-cycle',
    'following-a-run',
    'webhooks',
    'notifications',
    'idempotency-and-retries',
    'pagination',
    'scheduling',
    'browser-contexts',
    'sign-ins',
  ],
  Contract: ['errors', 'limits', 'versioning', 'changes', 'decisions'],
  Tools: ['client', 'python', 'workers', 'mcp', 'mock', 'simulator', 'scenarios', 'check-consumer', 'check-situations'],
  Operations: [
    'running-in-production',
    'reverse-proxies',
    'configuration',
    'operating',
    'observability',
    'backup-and-retention',
    'reliability',
  ],
}

const lastGroup = 'Operations'
const repository = new URL('../../../', import.meta.url)
/** Its pages that are listed above are for operators; the others are for developers of the service. */
const operatorDirectory = 'docs'
const guideDirectory = 'docs/guides'

export function readGuides(contracts: readonly Contract[]): Guide[] {
  const links = codeLinks(contracts)
  const inserts: Record<string, string> = {
    transitions: transitionTable(contracts),
    decisions: contracts.map(decisionTable).join('\n\n'),
    situations: readFileSync(new URL('generated/check-situations.md', repository), 'utf8'),
  }
  const sources = orderedNames()
  const served = new Map(sources.map(({ name, path }) => [path, name]))
  for (const { file, page } of contracts) served.set(`openapi/${file}.yaml`, page)
  return sources.map(({ name, group, path }) => {
    const source = withAddresses(readFileSync(new URL(path, repository), 'utf8'), contracts)
    const markdown = withServedLinks(source, posix.dirname(path), served).replace(
      /^<!-- (\w+) -->$/gm,
      (comment, insert: string) => inserts[insert] ?? comment,
    )
    return { ...renderGuide(markdown, links), name, group, markdown }
  })
}

/** The overview of the reference of each document, with a list of its operations. */
export function readOverviews(contracts: readonly Contract[]): Guide[] {
  return contracts.map(({ page, file, title, summary, document, tags }) => {
    const sections = tags.map(({ name, description, page, operations }) => {
      const items = operations.map(({ id, href, method, path, summary }) => {
        return `- [${summary}](${href}): \`${method.toUpperCase()} ${path}\`, \`${id}\``
      })
      return [`## ${name}`, `${description} [Reference of the operations](${page}.html)`, items.join('\n')].join('\n\n')
    })
    const documents = `The document: [JSON](${file}.json), [YAML](${file}.yaml).`
    const markdown = [`# ${title}`, summary, documents, ...sections, '## For all operations', document.info.description]
    const text = withAddresses(`${markdown.join('\n\n')}\n`, contracts)
    return { ...renderGuide(text, codeLinks(contracts)), name: page, group: 'Reference', markdown: text }
  })
}

/** Operations, and files that only the docs have, by their names: such a name in backticks becomes a link. */
function codeLinks(contracts: readonly Contract[]): Map<string, string> {
  const operations = contracts.flatMap(({ operations }) => operations.map(({ id, href }) => [id, href] as const))
  const documents = contracts.flatMap(({ file }) => [`${file}.json`, `${file}.yaml`])
  return new Map([...operations, ...[...documents, 'llms.txt', 'llms-full.txt'].map((name) => [name, name] as const)])
}

/** @returns with the path of each source in the repository. */
function orderedNames(): { name: string; group: string; path: string }[] {
  const listed = Object.entries(groups).flatMap(([group, names]) => names.map((name) => ({ name, group })))
  const others = readdirSync(new URL('../../../docs/guides/', import.meta.url))
    .flatMap((file) => (file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : []))
    .filter((name) => !listed.some((each) => each.name === name))
  return [...listed, ...others.sort().map((name) => ({ name, group: lastGroup }))].map((each) => {
    const guide = `${guideDirectory}/${each.name}.md`
    return { ...each, path: existsSync(new URL(guide, repository)) ? guide : `${operatorDirectory}/${each.name}.md` }
  })
}

/**
 * All pages are in one directory. A link to a document of `openapi/` leads to its reference, one to an example workflow to its
 * page, and one to another file of the repository becomes text that names the file.
 */
function withServedLinks(markdown: string, directory: string, served: ReadonlyMap<string, string>): string {
  return markdown.replace(/\[([^\]]+)\]\(([\w./-]+)(#[\w-]+)?\)/g, (link, text, target, anchor = '') => {
    if (!target.includes('/') && !target.endsWith('.md')) return link
    const path = posix.join(directory, target)
    const name = served.get(path) ?? path.replace(/^examples\/workflows\/([\w-]+)\.ts$/, 'example-$1')
    if (name !== path) return `[${text}](${name}.md${anchor})`
    return text === `\`${path}\`` ? text : `${text} (\`${path}\`)`
  })
}

function transitionTable(contracts: readonly Contract[]): string {
  const rows = contracts.flatMap(transitionsOf).map(({ from, to, when }) => `| \`${from}\` | \`${to}\` | ${when} |`)
  return ['| from | to | when |', '| --- | --- | --- |', ...rows].join('\n')
}

function decisionTable(contract: Contract): string {
  const rows = decisionsOf(contract).map(({ place, reason }) => `| ${place} | ${reason} |`)
  return [`## ${contract.title}`, '', '| place | reason |', '| --- | --- |', ...rows].join('\n')
}
