/** What a new version of a workflow breaks for its callers. */
import { isDeepStrictEqual } from 'node:util'
import { type Sentence, TooMuchToCompare } from '../../openapi/compare/place.ts'
import { valueAt } from '../../openapi/json-pointer.ts'
import { dayMilliseconds } from '../../storage/purge-target.ts'
import { findRuns, listRunSizes } from '../../storage/runs/run-list.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import { runInThread } from '../bounded-threads.ts'
import { firstIdAt } from '../runs/run.ts'
import { transitions } from '../runs/run-state.ts'
import { mask } from '../workflows/secrets.ts'
import type { JsonSchema, Workflow } from '../workflows/workflow.ts'
import type { Workflows } from '../workflows/workflows.ts'
import { compareWorkflows, type Described } from './compare-workflows.ts'

/** A workflow whose new version, or removal, breaks its callers. */
export interface BreakingVersion {
  id: string
  before: string
  /** `null` if the workflow was removed. */
  after: string | null
  changes: Sentence[]
  /** API keys with calls that would be refused, and how many of the calls that were examined. */
  /** The name is `null` where names of API keys are not shown. */
  callers: { name: string | null; calls: number }[]
}

/** Some milliseconds on the thread that serves requests. */
const inlineWorkMax = 3000

/** The same, without taking the thread that serves requests long. */
async function findChanges(before: Described, after: Described, accountId: string | null): Promise<Sentence[]> {
  try {
    return compareWorkflows(before, after, inlineWorkMax)
  } catch (error) {
    if (!(error instanceof TooMuchToCompare)) throw error
  }
  let found: Sentence[] | undefined
  const [was, is] = [before, after].map(({ id, version, variables, output, waits }) => {
    return { id, version, variables, output, ...(waits && { waits }) }
  })
  await runInThread<Sentence[]>(new URL('./compare-thread', import.meta.url), accountId, [was, is], (sentences) => {
    found = sentences
  })
  return found ?? [tooComplex]
}

/** What a comparison says that has used up its time. */
const tooComplex: Sentence = {
  kind: 'breaking',
  text: 'The schemas are too complex to be compared.',
  reason: 'They may have changed for callers.',
  pointer: '',
  operations: [],
}

/** Whether the first number in the version has risen, as Semantic Versioning requires for breaking changes. */
export function raisesMajor(before: string, after: string): boolean {
  return majorOf(after) > majorOf(before)
}

export function majorOf(version: string): number {
  return Number(/\d+/.exec(version)?.[0] ?? 0)
}

/** Whether code of one version executes runs that were queued for the other. */
export function hasSameMajor(a: string, b: string): boolean {
  return majorOf(a) === majorOf(b)
}

/** Less than 0 if `a` is the lower version: compares the numbers in them, then the texts. */
export function compareVersions(a: string, b: string): number {
  const numbers = (version: string) => (version.match(/\d+/g) ?? []).map(Number)
  const [ofA, ofB] = [numbers(a), numbers(b)]
  for (let index = 0; index < Math.max(ofA.length, ofB.length); index += 1) {
    const difference = (ofA[index] ?? 0) - (ofB[index] ?? 0)
    if (difference !== 0) return difference
  }
  return a === b ? 0 : a < b ? -1 : 1
}

export function nextMajor(version: string): string {
  return `${majorOf(version) + 1}.0.0`
}

/**
 * Lines that name each change, the API keys that it concerns, and the version to set.
 *
 * @param option allows breaking changes where the lines are read.
 */
export function describeBreaking(breaking: readonly BreakingVersion[], option = '--allow-breaking'): string[] {
  return breaking.flatMap(({ id, before, after, changes, callers }) => {
    const versions = before === after ? `still has the version ${after}` : `has the version ${after} after ${before}`
    return [
      after === null
        ? `The workflow ${id} is missing, which breaks its callers:`
        : `The workflow ${id} ${versions}, but breaks its callers:`,
      ...changes.map(({ text, reason }) => `  ${text} ${reason}`),
      ...callers.map(({ name, calls }) => {
        const key = name === null ? 'An API key' : `The API key "${name}"`
        return `  ${key} made ${calls} ${calls === 1 ? 'call' : 'calls'} in the last 30 days that would be refused.`
      }),
      after === null
        ? `Keep it, or use \`${option}\`.`
        : `Set its version to ${nextMajor(before)}, or keep what its callers use.`,
    ]
  })
}

/** What a deployment changes for callers of one workflow. */
export interface WorkflowChange {
  workflowId: string
  /** The version that they saw; `null` if they saw none. */
  before: string | null
  /** The version that they see; `null` if they see none. */
  after: string | null
  /** Whether an account's deployment no longer has the workflow, so that its callers see the installation's. */
  fallsBack: boolean
}

interface Comparison {
  /** What callers see. */
  current: Workflows
  /** What they would see. */
  next: Workflows
  /** The workflows that are deployed. */
  own: Workflows
}

/** Of the workflows that are deployed; then of those that were, and that callers no longer see in the same deployment. */
export function findWorkflowChanges({ current, next, own }: Comparison): WorkflowChange[] {
  const stays = (id: string) => next.get(id) !== undefined && next.deploymentOf(id) === current.deploymentOf(id)
  const left = current.list().filter(({ id }) => !own.get(id) && !stays(id))
  return [...own.list(), ...left].map(({ id: workflowId }) => {
    const [before, after] = [current.get(workflowId)?.version ?? null, next.get(workflowId)?.version ?? null]
    return { workflowId, before, after, fallsBack: after !== null && !own.get(workflowId) }
  })
}

/** Lines that name the version of each workflow, before and now. */
export function* describeChanges(changes: readonly WorkflowChange[]): Generator<string> {
  for (const { workflowId, before, after, fallsBack } of changes) {
    const versions = before === null || before === after ? after : `${before} → ${after}`
    if (after === null) yield `  ${workflowId} ${before} is removed; its queued runs are still executed`
    else if (fallsBack) yield `  ${workflowId} ${versions}, of the deployment for all accounts`
    else yield before === null ? `  ${workflowId} ${after} is new` : `  ${workflowId} ${versions}`
  }
}

/** Of the workflows that callers see now, those whose new version or removal breaks them. */
export async function findBreakingVersions(
  reader: Transaction,
  current: Workflows,
  next: Workflows,
  accountId: string | null,
  now: number,
): Promise<BreakingVersion[]> {
  const found: BreakingVersion[] = []
  for (const before of current.list()) {
    const after = next.get(before.id)
    if (after && raisesMajor(before.version, after.version)) continue
    const compared = after ? await findChanges(before, after, accountId) : []
    const changes = compared.filter(({ kind }) => kind === 'breaking')
    // The comparison does not see everything that validation depends on, such as defaults that others exclude.
    const isKept = after && isDeepStrictEqual(before.variables, after.variables)
    const callers = isKept
      ? []
      : await findBrokenCallers(reader, { before, was: current, is: after && next }, accountId, now)
    if (changes.length === 0 && callers.length === 0) continue
    found.push({ id: before.id, before: before.version, after: after?.version ?? null, changes, callers })
  }
  return found
}

const examinedDays = 30
/** Of each account, the newest. Validation takes some microseconds for each. */
const examinedCallsMax = 10_000

const findKeys = statement<{ id: string; account_id: string; name: string }, []>(
  'SELECT id, account_id, name FROM api_keys WHERE deleted_at IS NULL ORDER BY account_id, name, id',
)
/** Variables of a call have up to 1 MB. */
const callsPerRead = 100

/** The account's calls with API keys, newest first, found by the indexes of lists: without them, all runs of the month are read. */
async function* findCalls(reader: Transaction, accountId: string, workflowId: string, from: string) {
  const filter = { selector: { by: 'account' }, workflowId, from, statuses: Object.keys(transitions) } as const
  const runs = await listRunSizes(reader, accountId, filter, examinedCallsMax)
  for (let start = 0; start < runs.length; start += callsPerRead) {
    for (const { api_key_id: key, variables } of await findRuns(reader, runs.slice(start, start + callsPerRead)))
      if (key !== null) yield { key, variables }
  }
}

async function findBrokenCallers(
  reader: Transaction,
  /** `is` is `undefined` if the workflow was removed. */
  { before, was, is }: { before: Workflow; was: Workflows; is: Workflows | undefined },
  accountId: string | null,
  now: number,
): Promise<BreakingVersion['callers']> {
  const keys = (await reader.all(findKeys, [])).filter((key) => accountId === null || key.account_id === accountId)
  const firstId = firstIdAt(now - examinedDays * dayMilliseconds)
  const broken = new Map<string, number>()
  for (const account of new Set(keys.map((key) => key.account_id))) {
    for await (const { key, variables } of findCalls(reader, account, before.id, firstId)) {
      const call = JSON.parse(variables)
      // What an earlier version accepted may be refused already.
      if (is && (fits(is, before, call) || !isAccepted(was, before.id, structuredClone(call)))) continue
      broken.set(key, (broken.get(key) ?? 0) + 1)
    }
  }
  return keys.flatMap(({ id, name }) => {
    const calls = broken.get(id)
    return calls === undefined ? [] : [{ name, calls }]
  })
}

/** Stored variables have the defaults of the old schema filled in, which the caller may not have sent. */
function fits(workflows: Workflows, before: Workflow, variables: Record<string, unknown>): boolean {
  const members = Object(before.variables.properties) as Record<string, JsonSchema>
  const sent = Object.entries(variables).filter(([name, value]) => !isDeepStrictEqual(members[name]?.default, value))
  return [variables, Object.fromEntries(sent)].some((each) => isAccepted(workflows, before.id, structuredClone(each)))
}

/** Stored variables have masked secrets, whose values cannot be checked. */
function isAccepted(workflows: Workflows, id: string, variables: Record<string, unknown>): boolean {
  const checked = workflows.checkVariables(id, variables)
  return !('errors' in checked) || checked.errors.every(({ pointer }) => valueAt(variables, pointer) === mask)
}
