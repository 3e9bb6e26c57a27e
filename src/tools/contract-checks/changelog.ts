/** Writes the changelog of the contract from what separates the documents from those of the last release. */
import { CommandError } from '../../commands/output.ts'
import { listed, type Sentence } from './compare/sentences.ts'
import { changesOf } from './compatibility.ts'
import type { CheckedContract, Finding } from './finding.ts'

export const changelogPath = 'docs/guides/changes.md'

/** What stands below was released, and is never written again. */
const mark = '<!-- Released; above: written by `npm run changes`. -->'

const introduction = `# Changes

What changed in the contracts, release by release. v1 never breaks a client; the alpha may, and tells it here. A client
ignores members, headers and kinds of event that it does not know, and takes an error status that it does not know for
its class.
`

const headings = { breaking: 'Breaking', added: 'Added', deprecated: 'Deprecated', changed: 'Changed' } as const

/** The changelog with what is not released yet; \`text\` is the one that there is. */
export function changelog(guarded: readonly CheckedContract[], text: string): string {
  const sections = guarded.map((it) => section(it, ', not released yet')).filter((it) => it !== '')
  return [introduction, ...sections, mark, releasedPart(text)].join('\n')
}

/** The changelog after a release: what was above the mark stands below it, with the day. */
export function releasedChangelog(guarded: readonly CheckedContract[], text: string, day: string): string {
  const sections = guarded.map((it) => section(it, ` (${day})`)).filter((it) => it !== '')
  return [introduction, mark, ['', ...sections].join('\n') + releasedPart(text)].join('\n')
}

/** @throws {CommandError} when what was released cannot be told from the rest: it would be lost. */
function releasedPart(text: string): string {
  const [, released, ...others] = text.split(`${mark}\n`)
  if (released === undefined || others.length > 0)
    throw new CommandError(`${changelogPath} must have this line once: ${mark}`)
  return released
}

function section(guarded: CheckedContract, suffix: string): string {
  const changes = changesOf(guarded)
  if (changes.length === 0) return ''
  const { title, version } = guarded.current.info
  const groups = Object.entries(headings).map(([kind, heading]) => {
    const lines = changes.filter((it) => it.kind === kind).map((it) => `- ${line(it)}`)
    return lines.length ? `### ${heading}\n\n${lines.join('\n')}\n` : ''
  })
  return [`## ${title} ${version}${suffix}\n`, ...groups.filter((it) => it !== '')].join('\n')
}

/** The operations are named where the sentence names a schema. */
function line({ text, why, operations }: Sentence): string {
  const named =
    operations.length === 0 || operations.some((it) => text.includes(`\`${it}\``)) || text.includes('very operation')
  const more = operations.length > 3 ? ` and ${operations.length - 3} more` : ''
  const some = operations.slice(0, 3).map((it) => `\`${it}\``)
  const of = named ? '' : ` (${more ? some.join(', ') + more : listed(some, 'and')})`
  return `${text.replace(/\.$/, '')}${of}.${why ? ` ${why}` : ''}`
}

export function checkChangelog(guarded: readonly CheckedContract[], text: string): Finding[] {
  if (text.split(`${mark}\n`).length !== 2) {
    return [
      {
        severity: 'error',
        what: 'The changelog of the contract does not say once where the released part begins.',
        where: changelogPath,
        why: 'What was released could not be told from what is not, and would be lost.',
        mend: `Put this line back above the newest release, and nowhere else: ${mark}`,
      },
    ]
  }
  if (changelog(guarded, text) === text) return []
  return [
    {
      severity: 'error',
      what: 'The changelog of the contract does not tell what has changed since the last release.',
      where: changelogPath,
      why: 'Whoever calls the service learns there what has become of it.',
      mend: 'Run `npm run changes` and commit what it writes.',
    },
  ]
}
