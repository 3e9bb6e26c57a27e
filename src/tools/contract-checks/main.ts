/**
 * `npm run check:contract` checks the contract. With `--changes`, writes the unreleased part of the changelog; with
 * `--release`, checks the contract and releases the current documents.
 */
import { exitOnError, print } from '../../commands/output.ts'
import { checkChangelog, readChangelog, releaseContracts, writeChangelog } from './changelog.ts'
import { formatFinding, type Report, readCheckedContracts } from './checked-contract.ts'
import { checkCompatibility } from './compatibility.ts'
import {
  checkExamplePairs,
  checkNames,
  checkNestedLists,
  checkOpenResponses,
  checkPatterns,
  findUnusedExceptions,
  listCodePatterns,
  listDocumentPatterns,
} from './document-checks.ts'
import { checkSecurity } from './security.ts'

const root = '.'

/** Runs all checks in one process. @param root directory of the checkout. */
export async function runContractChecks(root: string): Promise<Report[]> {
  const contracts = readCheckedContracts(root)
  const patterns = [...contracts.flatMap(listDocumentPatterns), ...listCodePatterns(root)]
  return [
    checkCompatibility(contracts),
    {
      summary: '',
      findings: [...checkOpenResponses(contracts), ...checkExamplePairs(contracts), ...checkNestedLists(contracts)],
    },
    { summary: '', findings: checkChangelog(contracts, readChangelog(root)) },
    checkNames(contracts),
    await checkSecurity(contracts),
    checkPatterns(patterns),
    { summary: '', findings: findUnusedExceptions(patterns) },
  ]
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

if (import.meta.main) {
  await exitOnError(async () => {
    if (process.argv.includes('--changes')) writeChangelog(root)
    else if (!(await (process.argv.includes('--release') ? checkAndRelease() : check()))) process.exitCode = 1
  })
}
