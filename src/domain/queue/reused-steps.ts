/**
 * Starting a run from a step of a finished one: which steps are before it, what they have returned, and why the new run
 * may not reuse it.
 */

import { isDeepStrictEqual } from 'node:util'
import { valueAt } from '../../openapi/json-pointer.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { type Store, statement } from '../../storage/store.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { type Run, secretsAad, stepAad } from '../runs/run.ts'
import { createRedactor } from '../workflows/redactor.ts'
import { restoreSecrets, type Secrets } from '../workflows/secrets.ts'
import type { Queuer } from './queue-request.ts'
import { findRun } from './runs.sql.ts'

/** The step that a run starts from, and the results of those before it as JSON, in their order. */
export interface RunStart {
  fromStep: string
  results: readonly { name: string; value: string }[]
}

/** Why a run cannot start from a step of a finished one. */
export type RefusedStart =
  | { refused: 'succeeded' | 'erased' | 'otherCaller' | 'otherSecrets' }
  | { refused: 'otherVersion'; finished: string; current: string }
  /** @property steps the first names to start from, in order; secrets in them are masked. */
  | { refused: 'noSuchStep'; steps: string[] }

type Variables = Record<string, unknown>

interface Dependencies {
  store: Store
  encryption: Encryption
  workflows: WorkflowRegistry
}

const findNames = statement<{ name: string; position: number }, [runId: string]>(
  'SELECT name, position FROM run_steps WHERE run_id = ? ORDER BY position, name',
)
const findFirst = statement<{ name: string; value: Uint8Array }, [runId: string, limit: number]>(
  'SELECT name, value FROM run_steps WHERE run_id = ? ORDER BY position, name LIMIT ?',
)
const findEvents = statement<{ data: string }, [runId: string]>(
  "SELECT data FROM run_events WHERE run_id = ? AND type = 'step' ORDER BY sequence",
)

/** Names that a refusal lists. */
const listedMax = 20

/**
 * The names of the steps before `fromStep`, in the order in which they finished. Steps that started and did not finish, such
 * as the one in which the run failed, follow them.
 */
export async function findStepsBefore(
  dependencies: Dependencies,
  run: Run,
  fromStep: string,
): Promise<{ before: string[] } | RefusedStart> {
  const { store, workflows } = dependencies
  if (run.status === 'succeeded') return { refused: 'succeeded' }
  const current = workflows.current(run.accountId).get(run.workflowId)?.version
  if (current !== undefined && current !== run.workflowVersion)
    return { refused: 'otherVersion', finished: run.workflowVersion, current }
  const stored = await store.read.all(findNames, [run.id])
  const { finished, unfinished } = toSteps(await store.read.all(findEvents, [run.id]))
  // Versions that erased the results of all runs left their events.
  if (finished > stored.length) return { refused: 'erased' }
  const names = [...stored.map(({ name }) => name), ...unfinished]
  const index = names.indexOf(fromStep)
  if (index === -1) {
    const redact = createRedactor(await readSecrets(dependencies, run))
    return { refused: 'noSuchStep', steps: names.slice(0, listedMax).map(redact) }
  }
  return { before: names.slice(0, index) }
}

/** The number of steps that the run itself has finished, and the names of those that it has only started. */
function toSteps(events: readonly { data: string }[]): { finished: number; unfinished: Set<string> } {
  let finished = 0
  const unfinished = new Set<string>()
  for (const { data } of events) {
    const { name, state } = JSON.parse(data)
    if (state === 'finished') finished += 1
    if (state === 'started') unfinished.add(name)
    else if (state !== 'failed') unfinished.delete(name)
  }
  return { finished, unfinished }
}

/** Reads what the steps before `fromStep` have returned, unless the new run may not have it. */
export async function readStart(
  dependencies: Dependencies,
  run: Run,
  fromStep: string,
  { by, variables }: { by: Queuer; variables: Variables },
): Promise<RunStart | RefusedStart> {
  // Results may derive from secrets: the same rule holds.
  if (!mayReuse(by, variables, run)) return { refused: 'otherCaller' }
  const found = await findStepsBefore(dependencies, run, fromStep)
  if ('refused' in found) return found
  const { store, encryption } = dependencies
  const { length } = found.before
  const stored = length === 0 ? [] : await store.read.all(findFirst, [run.id, length])
  // The run may be deleted at the same time.
  if (stored.length < length) return { refused: 'erased' }
  const results = stored.map(({ name, value }) => ({ name, value: encryption.decrypt(value, stepAad(run.id, name)) }))
  const redact = createRedactor(replacedSecrets(variables, await readSecrets(dependencies, run)))
  // The log and the output of the new run are masked by its own secrets only.
  return results.some(({ value }) => redact(value) !== value) ? { refused: 'otherSecrets' } : { fromStep, results }
}

/**
 * Whether a caller gets the secrets of an earlier run, and what its steps returned: the caller that queued it does, others
 * with unchanged variables only. With a different URL, for example, the workflow might send a secret to another host.
 */
export function mayReuse(
  { apiKeyId, userId = null }: Omit<Queuer, 'accountId'>,
  variables: Variables,
  earlier: Pick<Run, 'apiKeyId' | 'userId' | 'variables'>,
): boolean {
  const isOwn = (userId !== null && earlier.userId === userId) || (apiKeyId !== null && earlier.apiKeyId === apiKeyId)
  return isOwn || canonicalJson(variables) === canonicalJson(earlier.variables)
}

/** The secrets whose members in the variables have neither the same value nor the mask. */
function replacedSecrets(variables: Variables, secrets: Secrets): Secrets {
  const { value } = restoreSecrets(variables, secrets)
  const replaced = Object.entries(secrets).filter(
    ([pointer, each]) => !isDeepStrictEqual(valueAt(value, pointer), each),
  )
  return Object.fromEntries(replaced)
}

async function readSecrets({ store, encryption }: Dependencies, { accountId, id }: Run): Promise<Secrets> {
  const row = await findRun(store.read, accountId, id)
  return row?.secrets ? JSON.parse(encryption.decrypt(row.secrets, secretsAad(accountId, id))) : {}
}
