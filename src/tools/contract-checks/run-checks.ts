/** Everything that guards the contract, in one process: the promise of versions, security, patterns, spelling. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, type DocumentName, documentNames } from '../../openapi/document.ts'
import { changelogPath, checkChangelog } from './changelog.ts'
import { checkCompatibility } from './compatibility.ts'
import type { CheckedContract, Report } from './finding.ts'
import { checkPatterns, patternsOfCode, patternsOfDocument, unusedExcuses } from './patterns.ts'
import { checkSecurity } from './security.ts'
import { checkSpelling, type Prose, proseOfDocument, proseOfMarkdown, unusedWords } from './spelling.ts'

export function releasedPath(name: DocumentName): string {
  return `openapi/released/${name}.json`
}

export function currentPath(name: DocumentName): string {
  return `generated/${name}/document.json`
}

/** Both documents of the checkout at `root`: as they are, and as they were released. */
export function readCheckedContract(root: string): CheckedContract[] {
  const read = (path: string): Document => JSON.parse(readFileSync(join(root, path), 'utf8'))
  return documentNames.map((name) => ({ name, current: read(currentPath(name)), released: read(releasedPath(name)) }))
}

export function readChangelog(root: string): string {
  return readFileSync(join(root, changelogPath), 'utf8')
}

/** All that users read: the documents' prose, the guides, the README. Decisions are full of names of libraries. */
export function readProse(root: string, guarded: readonly CheckedContract[]): Prose[] {
  const files = ['README.md', 'CHANGELOG.md', 'docs/*.md', 'docs/guides/*.md'].flatMap((pattern) =>
    globSync(pattern, { cwd: root }).sort(),
  )
  return [
    ...guarded.flatMap(proseOfDocument),
    ...files.flatMap((file) => proseOfMarkdown(file, readFileSync(join(root, file), 'utf8'))),
  ]
}

export async function runContractChecks(root: string): Promise<Report[]> {
  const guarded = readCheckedContract(root)
  const prose = readProse(root, guarded)
  const patterns = [...guarded.flatMap(patternsOfDocument), ...patternsOfCode(root)]
  return [
    checkCompatibility(guarded),
    { looked: '', findings: checkChangelog(guarded, readChangelog(root)) },
    await checkSecurity(guarded),
    checkPatterns(patterns),
    { looked: '', findings: unusedExcuses(patterns) },
    checkSpelling(prose),
    { looked: '', findings: unusedWords(prose) },
  ]
}
