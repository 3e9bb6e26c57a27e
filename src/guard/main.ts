/**
 * `node src/guard/main.ts` checks the contract. With `--changes` it writes the changelog of what is not released yet;
 * with `--release` it makes the documents as they are the released ones, unless the check fails.
 */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { changelog, changelogPath, releasedChangelog } from './changelog.ts'
import { changesOf } from './contract.ts'
import { type Finding, shownFinding } from './finding.ts'
import { currentPath, guard, readChangelog, readGuarded, releasedPath } from './guard.ts'

const root = '.'

function out(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Whether nothing is wrong; warnings are shown. */
async function check(): Promise<boolean> {
  const reports = await guard(root)
  const findings = reports.flatMap((it) => it.findings)
  for (const finding of findings) out(`${shownFinding(finding)}\n`)
  const errors = findings.filter((it: Finding) => it.severity === 'error').length
  const looked = reports.map((it) => it.looked).filter((it) => it !== '')
  if (errors === 0) out(`The contract is guarded: ${looked.join(', ')}; ${(performance.now() / 1000).toFixed(1)} s.`)
  else out(`The contract is not as it must be: ${errors} ${errors === 1 ? 'error' : 'errors'}.`)
  return errors === 0
}

async function writeChanges(): Promise<void> {
  await mkdir(dirname(changelogPath), { recursive: true })
  await writeFile(changelogPath, changelog(readGuarded(root), readChangelog(root)))
  out(`wrote: ${changelogPath}`)
}

/** The day is UTC's. */
async function release(): Promise<boolean> {
  if (!(await check())) return false
  const guarded = readGuarded(root)
  if (guarded.every((it) => changesOf(it).length === 0)) {
    out('Nothing has changed since the last release.')
    return true
  }
  const day = new Date().toISOString().slice(0, 10)
  await writeFile(changelogPath, releasedChangelog(guarded, readChangelog(root), day))
  for (const { name, current } of guarded) {
    await copyFile(currentPath(name), releasedPath(name))
    out(`released: ${current.info.title} ${current.info.version}`)
  }
  return true
}

if (process.argv.includes('--changes')) await writeChanges()
else if (!(await (process.argv.includes('--release') ? release() : check()))) process.exitCode = 1
