/** Everything that guards the contract, in one process: the promise of versions, security, patterns, spelling. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, type DocumentName, documentNames } from '../generate/document.ts'
import { changelogPath, guardChangelog } from './changelog.ts'
import { guardContract } from './contract.ts'
import type { Guarded, Report } from './finding.ts'
import { guardPatterns, patternsOfCode, patternsOfDocument, unusedExcuses } from './patterns.ts'
import { guardSecurity } from './security.ts'
import { guardSpelling, type Prose, proseOfDocument, proseOfMarkdown, unusedWords } from './spelling.ts'

export function releasedPath(name: DocumentName): string {
  return `openapi/released/${name}.json`
}

export function currentPath(name: DocumentName): string {
  return `generated/${name}/document.json`
}

/** Both documents of the checkout at `root`: as they are, and as they were released. */
export function readGuarded(root: string): Guarded[] {
  const read = (path: string): Document => JSON.parse(readFileSync(join(root, path), 'utf8'))
  return documentNames.map((name) => ({ name, current: read(currentPath(name)), released: read(releasedPath(name)) }))
}

export function readChangelog(root: string): string {
  return readFileSync(join(root, changelogPath), 'utf8')
}

/** All that users read: the documents' prose, the guides, the README. Decisions are full of names of libraries. */
export function readProse(root: string, guarded: readonly Guarded[]): Prose[] {
  const files = ['README.md', 'CHANGELOG.md', 'docs/*.md', 'docs/guides/*.md'].flatMap((pattern) =>
    globSync(pattern, { cwd: root }).sort(),
  )
  return [
    ...guarded.flatMap(proseOfDocument),
    ...files.flatMap((file) => proseOfMarkdown(file, readFileSync(join(root, file), 'utf8'))),
  ]
}

export async function guard(root: string): Promise<Report[]> {
  const guarded = readGuarded(root)
  const prose = readProse(root, guarded)
  const patterns = [...guarded.flatMap(patternsOfDocument), ...patternsOfCode(root)]
  return [
    guardContract(guarded),
    { looked: '', findings: guardChangelog(guarded, readChangelog(root)) },
    await guardSecurity(guarded),
    guardPatterns(patterns),
    { looked: '', findings: unusedExcuses(patterns) },
    guardSpelling(prose),
    { looked: '', findings: unusedWords(prose) },
  ]
}
