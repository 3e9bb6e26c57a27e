/** llms.txt: what the docs have, for language models (https://llmstxt.org). */
import type { Contract } from './contracts.ts'
import type { Guide } from './guides.ts'

export function llmsText(guides: readonly Guide[], contracts: readonly Contract[]): string {
  const [start] = guides
  return `# execution-service

> ${start?.summary ?? ''}

## Guides

${guides.map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}`).join('\n')}

## Contracts

${contracts
  .map(
    ({ file, title, version, summary }) =>
      `- [${title} ${version}](${file}.json): OpenAPI 3.1 document. ${summary}\n- [${title} as YAML](${file}.yaml): the same in YAML.`,
  )
  .join('\n')}
`
}
