/** The changelog of the contract: its unreleased part is generated from the differences to the last release. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../commands/output.ts'
import { formatList, type Sentence } from '../../openapi/compare/place.ts'
import {
  type CheckedContract,
  currentPath,
  type Finding,
  readCheckedContracts,
  releasedPath,
} from './checked-contract.ts'
import { listChanges } from './compatibility.ts'

const changelogPath = 'docs/guides/changes.md'

/** Separates the generated part from the history below, which is never rewritten. */
const marker = '<!-- Released; above: written by `npm run changes`. -->'

const introduction = `# Changes

What changed in the contracts, release by release. v1 never breaks a client; the alpha may, and lists it here. Clients
must ignore members, headers and types of event that they do not know, and treat an unknown error status by its class.
`

const headings = { breaking: 'Breaking', added: 'Added', deprecated: 'Deprecated', changed: 'Changed' } as const

export function readChangelog(root: string): string {
  return readFileSync(join(root, changelogPath), 'utf8')
}

export function writeChangelog(root: string): void {
  writeFileSync(join(root, changelogPath), renderUnreleased(readCheckedContracts(root), readChangelog(root)))
}

/**
 * Makes the current documents the released ones and moves their changes to the history. The caller has checked them.
 *
 * @returns title and version of each document that had changes.
 */
export function releaseContracts(root: string, day: string): string[] {
  const changed = readCheckedContracts(root).filter((it) => listChanges(it).length > 0)
  if (changed.length === 0) return []
  writeFileSync(join(root, changelogPath), renderReleased(changed, readChangelog(root), day))
  for (const { name } of changed) copyFileSync(join(root, currentPath(name)), join(root, releasedPath(name)))
  return changed.map(({ current }) => `${current.info.title} ${current.info.version}`)
}

/** Renders the changelog with current unreleased changes above the history of `text`. */
export function renderUnreleased(contracts: readonly CheckedContract[], text: string): string {
  return [introduction, ...renderSections(contracts, ', not released yet'), marker, historyIn(text)].join('\n')
}

export function renderReleased(contracts: readonly CheckedContract[], text: string, day: string): string {
  return [introduction, marker, ['', ...renderSections(contracts, ` (${day})`)].join('\n') + historyIn(text)].join('\n')
}

/** @throws {CommandError} if the history cannot be separated: it would be lost. */
function historyIn(text: string): string {
  const [, history, ...others] = text.split(`${marker}\n`)
  if (history === undefined || others.length > 0)
    throw new CommandError(`${changelogPath} must contain this line exactly once: ${marker}`)
  return history
}

function renderSections(contracts: readonly CheckedContract[], suffix: string): string[] {
  return contracts.flatMap((contract) => {
    const changes = listChanges(contract)
    if (changes.length === 0) return []
    const { title, version } = contract.current.info
    const groups = Object.entries(headings).flatMap(([kind, heading]) => {
      const lines = renderLines(changes.filter((it) => it.kind === kind))
      return lines.length ? [`### ${heading}\n\n${lines.map((it) => `- ${it}\n`).join('')}`] : []
    })
    return [[`## ${title} ${version}${suffix}\n`, ...groups].join('\n')]
  })
}

/** Counts revised descriptions and examples, which change nothing for callers, instead of listing them. */
function renderLines(changes: Sentence[]): string[] {
  const isRevision = ({ text }: Sentence) => / has (a new description|new examples)\.$/.test(text)
  const lines = changes.filter((it) => !isRevision(it)).map(renderLine)
  const revisions = changes.length - lines.length
  if (revisions === 0) return lines
  return [...lines, `Descriptions and examples were revised in ${revisions} ${revisions === 1 ? 'place' : 'places'}.`]
}

/** Names the operations unless the sentence does. */
function renderLine({ text, reason, operations }: Sentence): string {
  const isNamed =
    operations.length === 0 || operations.some((it) => text.includes(`\`${it}\``)) || text.includes('very operation')
  const some = operations.slice(0, 3).map((it) => `\`${it}\``)
  const rest = operations.length - some.length
  const shown = rest > 0 ? `${some.join(', ')} and ${rest} more` : formatList(some, 'and')
  return `${text.replace(/\.$/, '')}${isNamed ? '' : ` (${shown})`}.${reason ? ` ${reason}` : ''}`
}

export function checkChangelog(contracts: readonly CheckedContract[], text: string): Finding[] {
  const location = changelogPath
  if (text.split(`${marker}\n`).length !== 2) {
    return [
      {
        severity: 'error',
        message: 'The changelog of the contract does not mark exactly once where the released part begins.',
        location,
        reason: 'Without the mark, the released part would be overwritten.',
        fix: `Insert this line above the newest release, and nowhere else: ${marker}`,
      },
    ]
  }
  if (renderUnreleased(contracts, text) === text) return []
  return [
    {
      severity: 'error',
      message: 'The changelog of the contract is out of date.',
      location,
      reason: 'Callers of the service read there what changes for them.',
      fix: 'Run `npm run changes` and commit the result.',
    },
  ]
}
