/** Writes what a release of the contract leaves behind: the released documents, and the changelog. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { changelog, changelogPath, releasedChangelog } from './changelog.ts'
import { changesOf } from './compatibility.ts'
import { currentPath, readChangelog, readCheckedContract, releasedPath } from './run-checks.ts'

/** The changelog of what is not released yet. */
export function writeChanges(root: string): void {
  write(root, changelog(readCheckedContract(root), readChangelog(root)))
}

/**
 * Makes the documents as they are the released ones, and their changes history. Whoever calls it has checked them.
 * Answers what was released: nothing, where nothing has changed.
 */
export function release(root: string, day: string): string[] {
  const changed = readCheckedContract(root).filter((it) => changesOf(it).length > 0)
  if (changed.length === 0) return []
  write(root, releasedChangelog(changed, readChangelog(root), day))
  for (const { name } of changed) copyFileSync(join(root, currentPath(name)), join(root, releasedPath(name)))
  return changed.map(({ current }) => `${current.info.title} ${current.info.version}`)
}

function write(root: string, text: string): void {
  mkdirSync(dirname(join(root, changelogPath)), { recursive: true })
  writeFileSync(join(root, changelogPath), text)
}
