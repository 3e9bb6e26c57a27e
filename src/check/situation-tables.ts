/** The tables of situations in the docs. */
import { situations } from './check-consumer.ts'
import type { Situation } from './situation.ts'

const headings: Record<Situation['group'], string> = {
  requests: 'Requests',
  runs: 'Runs',
  webhooks: 'Webhooks',
}

/** Markdown, with links that are relative to the guides. */
export function situationTables(): string {
  return Object.entries(headings)
    .map(([group, heading]) => {
      const rows = situations.filter((situation) => situation.group === group).map(row)
      return [
        `## ${heading}`,
        '',
        '| situation | what happens | the rule | source |',
        '| --- | --- | --- | --- |',
        ...rows,
      ]
    })
    .map((lines) => lines.join('\n'))
    .join('\n\n')
    .concat('\n')
}

function row({ id, title, rule, docs, source }: Situation): string {
  const link = `[${source}](${docs.replace(/^guides\//, '')})`
  return `| \`${id}\` | ${title}. | ${rule} | ${link} |`
}
