/** Checks that v1 does not break clients, and that versions rise as Semantic Versioning requires. */

import { compareDocuments } from '../../openapi/compare/documents.ts'
import { type Sentence, toSentences } from '../../openapi/compare/place.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'

export function listChanges({ released, current }: CheckedContract): Sentence[] {
  return toSentences(compareDocuments(released, current), released)
}

export function checkCompatibility(contracts: readonly CheckedContract[]): Report {
  const compared = contracts.map((contract) => ({ contract, changes: listChanges(contract) }))
  return {
    summary: `${compared.flatMap(({ changes }) => changes).length} changes since the last release`,
    findings: compared.flatMap(({ contract, changes }) => [
      ...checkBreakingChanges(contract, changes),
      ...checkVersion(contract, changes),
    ]),
  }
}

/** Breaking changes of v1 that are accepted, each with the reason. */
const accepted: Record<string, string> = {
  'Query parameter `browserContextId` of `queueRemoteRun` now requires the scope `browser-contexts:use`.':
    'A key that may not read browser contexts was never to act with their sign-ins, and 0.1.0 is not installed anywhere.',
  '`RunReasonCode` can also be `nonRetryable`.':
    'An end that no attempt would change differs from one that used up its attempts: a caller repeats only the latter.',
  '`WaitingFor` can also be `deployment`.':
    'Only where a worker cannot get the code of a run. It would otherwise be executed by other code than was validated.',
  '`WaitingFor` can also be `throttle`.':
    'Only for workflows that declare `throttle`, which the last release does not know.',
  ...Object.fromEntries(
    ['`WaitingFor` can also be `secret`.', '`WaitingFor` can also be `setting`.'].map((text) => [
      text,
      'Only for workflows that declare secrets or settings, which the last release does not know.',
    ]),
  ),
  ...Object.fromEntries(
    [
      '`WaitingFor` can also be `sleep`.',
      '`WaitingFor` can also be `answer`.',
      '`WaitingFor` can also be `run`.',
      '`RunReasonCode` can also be `waiting`.',
      '`RunStatus` can also be `waiting`.',
    ].map((text) => [text, 'Only for workflows that wait, which the last release does not know.']),
  ),
  ...Object.fromEntries(
    ['`WaitingFor` can also be `signIn`.', '`RunReasonCode` can also be `needsSignIn`.'].map((text) => [
      text,
      'Only for browser contexts with a sign-in, which the last release does not know.',
    ]),
  ),
  '`Workflow` no longer has the member `concurrencyLimit`.':
    '`concurrency` has every kind of limit, and 0.1.0 is not installed anywhere.',
}

/** Versions below 1.0.0 make no promise (Semantic Versioning, section 4). */
function isStable({ released }: CheckedContract): boolean {
  return parseVersion(released.info.version)[0] > 0
}

function checkBreakingChanges(contract: CheckedContract, changes: Sentence[]): Finding[] {
  const stable = isStable(contract)
  const breaking = changes.filter(({ kind, text }) => kind === 'breaking' && !(text in accepted))
  return breaking.map(({ text, reason, pointer, operations }) => ({
    severity: stable ? 'error' : 'warning',
    message: text,
    location: `openapi/${contract.name}.yaml, ${operations.length ? `${operations.join(', ')}: ` : ''}${pointer}`,
    reason,
    fix: stable
      ? 'Revert it, or add the new behaviour next to the old: v1 must not break clients.'
      : 'The alpha may break clients; update them together with the service.',
  }))
}

function checkVersion(contract: CheckedContract, changes: Sentence[]): Finding[] {
  const { name, released, current } = contract
  const { title, version } = current.info
  const minimum = requiredVersion(contract, changes)
  if (!isLower(version, minimum)) return []
  const has = (kind: Sentence['kind']) => changes.some((it) => it.kind === kind)
  const change = has('breaking')
    ? 'has breaking changes'
    : has('added') || has('deprecated')
      ? 'has additions'
      : 'has changed'
  return [
    {
      severity: isStable(contract) ? 'error' : 'warning',
      message: `${title} has the version ${version}, but ${change} since ${released.info.version}.`,
      location: `openapi/${name}.yaml, /info/version`,
      reason: 'Clients rely on the version (Semantic Versioning).',
      fix: `Set \`info.version\` to ${minimum}, and run \`npm run generate\` and \`npm run changes\`.`,
    },
  ]
}

/** The lowest version that the changes permit. Below 1.0.0, only breaking changes raise the minor number. */
function requiredVersion(contract: CheckedContract, changes: Sentence[]): string {
  const { version } = contract.released.info
  const [major, minor, patch] = parseVersion(version)
  const raisesMinor = changes.some(({ kind }) => kind === 'breaking' || (isStable(contract) && kind !== 'changed'))
  if (changes.length === 0) return version
  return raisesMinor ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

function parseVersion(version: string): [number, number, number] {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return [major, minor, patch]
}

export function isLower(one: string, other: string): boolean {
  const [a, b] = [parseVersion(one), parseVersion(other)]
  const index = a.findIndex((number, index) => number !== b[index])
  return index >= 0 && (a[index] as number) < (b[index] as number)
}
