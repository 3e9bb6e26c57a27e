/**
 * `node src/tools/contract-checks/main.ts` checks the contract. With `--changes` it writes the changelog of what is not released yet;
 * with `--release` it makes the documents as they are the released ones, unless the check fails.
 */
import { exitOnError } from '../../commands/output.ts'
import { type Finding, shownFinding } from './finding.ts'
import { release, writeChanges } from './release.ts'
import { runContractChecks } from './run-checks.ts'

const root = '.'

function out(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Whether nothing is wrong; warnings are shown. */
async function check(): Promise<boolean> {
  const reports = await runContractChecks(root)
  const findings = reports.flatMap((it) => it.findings)
  for (const finding of findings) out(`${shownFinding(finding)}\n`)
  const errors = findings.filter((it: Finding) => it.severity === 'error').length
  const looked = reports.map((it) => it.looked).filter((it) => it !== '')
  if (errors === 0) out(`The contract is guarded: ${looked.join(', ')}; ${(performance.now() / 1000).toFixed(1)} s.`)
  else out(`The contract is not as it must be: ${errors} ${errors === 1 ? 'error' : 'errors'}.`)
  return errors === 0
}

/** The day is UTC's. */
async function releaseChecked(): Promise<boolean> {
  if (!(await check())) return false
  const released = release(root, new Date().toISOString().slice(0, 10))
  for (const document of released) out(`released: ${document}`)
  if (released.length === 0) out('Nothing has changed since the last release.')
  return true
}

await exitOnError(async () => {
  if (process.argv.includes('--changes')) writeChanges(root)
  else if (!(await (process.argv.includes('--release') ? releaseChecked() : check()))) process.exitCode = 1
})
