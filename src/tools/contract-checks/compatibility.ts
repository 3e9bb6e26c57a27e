/** Holds the promise of versions: v1 breaks nobody, and whatever changes is told. */
import { compareDocuments } from './compare/documents.ts'
import { type Sentence, sentences } from './compare/sentences.ts'
import type { CheckedContract, Finding, Report } from './finding.ts'

export function changesOf({ released, current }: CheckedContract): Sentence[] {
  return sentences(compareDocuments(released, current), released)
}

export function checkCompatibility(guarded: readonly CheckedContract[]): Report {
  const changes = guarded.map((it) => ({ it, changes: changesOf(it) }))
  const count = changes.reduce((sum, each) => sum + each.changes.length, 0)
  return {
    looked: `${count} changes since the last release`,
    findings: changes.flatMap((each) => [...breaking(each.it, each.changes), ...version(each.it, each.changes)]),
  }
}

/** A version below 1.0.0 promises nothing (Semantic Versioning, section 4). */
export function isStable({ released }: CheckedContract): boolean {
  return numbers(released.info.version)[0] > 0
}

function breaking(guarded: CheckedContract, changes: Sentence[]): Finding[] {
  const stable = isStable(guarded)
  return changes
    .filter(({ kind }) => kind === 'breaking')
    .map(({ text, why, pointer, operations }) => ({
      severity: stable ? 'error' : 'warning',
      what: text,
      where: `openapi/${guarded.name}.yaml, ${operationsShown(operations)}${pointer}`,
      why,
      mend: stable
        ? 'Take it back, or add what is new beside what there is: v1 is a promise.'
        : 'This version is alpha and may change; its clients have to be changed with it.',
    }))
}

function operationsShown(operations: string[]): string {
  return operations.length ? `${operations.join(', ')}: ` : ''
}

function version(guarded: CheckedContract, changes: Sentence[]): Finding[] {
  const { name, released, current } = guarded
  const [was, is] = [released.info.version, current.info.version]
  const least = leastVersion(guarded, changes)
  if (!isLower(is, least)) return []
  const kinds = new Set(changes.map(({ kind }) => kind))
  const reason = kinds.has('added') || kinds.has('deprecated') ? 'there are additions' : 'its words have changed'
  return [
    {
      severity: isStable(guarded) ? 'error' : 'warning',
      what: `${current.info.title} has the version ${is}, but ${kinds.has('breaking') ? 'it breaks clients' : reason} since ${was}.`,
      where: `openapi/${name}.yaml, /info/version`,
      why: 'Clients tell by the version what they may rely on (Semantic Versioning).',
      mend: `Set \`info.version\` to ${least}, and run \`npm run generate\` and \`npm run changes\`.`,
    },
  ]
}

/** The lowest version that the changes permit; below 1.0.0 the minor number counts what breaks. */
function leastVersion(guarded: CheckedContract, changes: Sentence[]): string {
  const { version } = guarded.released.info
  const [major, minor, patch] = numbers(version)
  const grave = changes.some(({ kind }) => kind === 'breaking' || (isStable(guarded) && kind !== 'changed'))
  if (changes.length === 0) return version
  return grave ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

function numbers(version: string): [number, number, number] {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return [major, minor, patch]
}

export function isLower(one: string, other: string): boolean {
  const [a, b] = [numbers(one), numbers(other)]
  const at = a.findIndex((number, index) => number !== b[index])
  return at >= 0 && (a[at] as number) < (b[at] as number)
}
