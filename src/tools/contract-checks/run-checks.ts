/** Runs all contract checks in one process: compatibility, open responses, changelog, names, security and patterns. */
import { checkChangelog, readChangelog } from './changelog.ts'
import { type Report, readCheckedContracts } from './checked-contract.ts'
import { checkCompatibility } from './compatibility.ts'
import { checkNames } from './names.ts'
import { checkOpenResponses } from './open-responses.ts'
import { checkPatterns, findUnusedExceptions, listCodePatterns, listDocumentPatterns } from './patterns.ts'
import { checkSecurity } from './security.ts'

/** @param root directory of the checkout. */
export async function runContractChecks(root: string): Promise<Report[]> {
  const contracts = readCheckedContracts(root)
  const patterns = [...contracts.flatMap(listDocumentPatterns), ...listCodePatterns(root)]
  return [
    checkCompatibility(contracts),
    { summary: '', findings: checkOpenResponses(contracts) },
    { summary: '', findings: checkChangelog(contracts, readChangelog(root)) },
    checkNames(contracts),
    await checkSecurity(contracts),
    checkPatterns(patterns),
    { summary: '', findings: findUnusedExceptions(patterns) },
  ]
}
