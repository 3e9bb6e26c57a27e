/**
 * `npm run check:contract` checks the contract. With `--changes`, writes the unreleased part of the changelog; with
 * `--release`, checks the contract and releases the current documents.
 */
import { exitOnError } from '../../commands/output.ts'
import { releaseContracts, writeChangelog } from './changelog.ts'
import { formatFinding } from './checked-contract.ts'
import { runContractChecks } from './run-checks.ts'

const root = '.'

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function check(): Promise<boolean> {
  const reports = await runContractChecks(root)
  const findings = reports.flatMap((it) => it.findings)
  for (const finding of findings) print(`${formatFinding(finding)}\n`)
  const errors = findings.filter((it) => it.severity === 'error').length
  const summaries = reports.map((it) => it.summary).filter((it) => it !== '')
  if (errors === 0)
    print(`Contract checks passed: ${summaries.join(', ')}; ${(performance.now() / 1000).toFixed(1)} s.`)
  else print(`Contract checks failed: ${errors} ${errors === 1 ? 'error' : 'errors'}.`)
  return errors === 0
}

async function checkAndRelease(): Promise<boolean> {
  if (!(await check())) return false
  const todayInUtc = new Date().toISOString().slice(0, 10)
  const released = releaseContracts(root, todayInUtc)
  for (const document of released) print(`released: ${document}`)
  if (released.length === 0) print('Nothing has changed since the last release.')
  return true
}

await exitOnError(async () => {
  if (process.argv.includes('--changes')) writeChangelog(root)
  else if (!(await (process.argv.includes('--release') ? checkAndRelease() : check()))) process.exitCode = 1
})
