/** What queued and waiting runs wait for: which concurrency limit or throttle, which other run, and behind how many. */
import { positionMax } from '../../storage/runs/run-statements.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { RunsTable, RunWaitsTable, WaitKind } from '../../storage/tables/run-tables.ts'
import type { SignInStatus } from '../../storage/tables/tables.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { hasSameMajor, majorOf } from '../deployments/evolution.ts'
import { type DescribeLimit, keyOf, type Run, type WaitDetail, waitDetail } from '../runs/run.ts'
import { limitPer, type Throttle } from '../workflows/workflow-limits.ts'
import { type ConcurrencyLimits, findThrottles, RunningCounts, throttleId } from './limits.ts'

type QueuedRun = Pick<RunsTable, 'status' | 'workflow_id' | 'account_id' | 'concurrency_group'> &
  Partial<Pick<RunsTable, 'continues'>>

interface Registry {
  workflows: WorkflowRegistry
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency: number | undefined
}

/**
 * Reads what `Run` needs to describe limits of runs of one account. Counts running runs only if a queued run among these
 * has a concurrency limit, and reads throttles only if the workflow of one has a rate.
 */
export async function readLimits(
  read: Transaction,
  { workflows: registry, accountConcurrency }: Registry,
  runs: readonly QueuedRun[],
): Promise<DescribeLimit> {
  const workflows = registry.current(runs[0]?.account_id ?? '')
  const find = ({ workflow_id }: { workflow_id: string }) => workflows.get(workflow_id)
  const limits: ConcurrencyLimits = {
    ofWorkflow: (run) => limitPer('workflow', find(run)),
    ofWorkflowInAccount: (run) => limitPer('account', find(run)),
    ofAccount: accountConcurrency || Number.POSITIVE_INFINITY,
  }
  const isLimited = (run: QueuedRun) =>
    Math.min(limits.ofAccount, limits.ofWorkflow(run), limits.ofWorkflowInAccount?.(run) ?? Number.POSITIVE_INFINITY) <
    Number.POSITIVE_INFINITY
  const queued = runs.filter(({ status }) => status === 'queued')
  const running = queued.some(isLimited) ? await RunningCounts.read(read, registry.scopeOf) : undefined
  // A run that goes on after a wait has started before.
  const throttleOf = (run: QueuedRun) => (run.continues === 1 ? undefined : find(run)?.throttle)
  const idOf = (run: QueuedRun) => {
    const throttle = throttleOf(run)
    return throttle && throttleId(throttle, run, run.concurrency_group, registry.scopeOf)
  }
  const throttles = await findThrottles(
    read,
    queued.flatMap((run) => idOf(run) ?? []),
  )
  return (run) => {
    const throttle = throttleOf(run)
    const row = throttles.get(idOf(run) ?? '')
    const reached = run.waiting_for === 'concurrencyGroup' ? undefined : running?.reachedLimit(run, limits)
    const nameOf = (per: 'workflow' | 'workflowInAccount' | 'account' | 'key') =>
      per === 'key' ? keyOf(run) : run.workflow_id
    if (reached) {
      const name = reached.per === 'account' ? null : nameOf(reached.per)
      return waitDetail('concurrencyLimit', name, describe(reached.per, reached.limit))
    }
    if (throttle && row) return waitDetail('throttle', nameOf(throttle.per), describeThrottle(throttle, row.permits_at))
    if (run.waiting_for !== 'concurrencyGroup') return undefined
    return waitDetail('concurrencyLimit', nameOf('key'), describe('key', limitPer('key', find(run))))
  }
}

function describeThrottle({ limit, periodSeconds, per }: Throttle, permitsAt: number): string {
  const runs = limit === 1 ? 'one run' : `${limit} runs`
  const scope = { workflow: '', account: ' in this account', key: ' for each concurrency key' }[per]
  const next = new Date(permitsAt).toISOString()
  return `This workflow starts at most ${runs} in ${periodSeconds} s${scope}. The next one starts at ${next}.`
}

function describe(per: 'workflow' | 'workflowInAccount' | 'account' | 'key', limit: number): string {
  // The limit of a key may be gone since the run began to wait.
  const count = limit === Number.POSITIVE_INFINITY ? 'few' : limit === 1 ? 'one' : `at most ${limit}`
  switch (per) {
    case 'workflow':
      return `This workflow runs ${count} at a time.`
    case 'workflowInAccount':
      return `This workflow runs ${count} at a time in this account.`
    case 'account':
      return `This account runs ${count} at a time.`
    case 'key':
      return `This workflow runs ${count} at a time for each concurrency key.`
  }
}

const findHolder = statement<
  { held_by_run_id: string | null; sign_in_run_id: string | null; status: SignInStatus | null },
  [contextId: string]
>(
  `SELECT held_by_run_id, run_id AS sign_in_run_id, status FROM browser_contexts
    LEFT JOIN context_sign_ins ON browser_context_id = id WHERE id = ?`,
)

/** Which run uses the browser context or signs it in, or that a person is needed. */
async function describeContextWait(
  read: Transaction,
  kind: 'browserContext' | 'signIn',
  { browserContextId }: Run,
): Promise<WaitDetail | null> {
  const [context] = browserContextId === null ? [] : await read.all(findHolder, [browserContextId])
  if (!context) return null
  const { held_by_run_id: holder, sign_in_run_id: signsIn, status } = context
  if (signsIn !== null && (kind === 'signIn' || holder === signsIn)) {
    const does =
      status === 'signingIn' ? 'signs the browser context in' : 'checks whether the browser context is signed in'
    return waitDetail(kind, signsIn, `Run ${signsIn} ${does}.`)
  }
  if (kind === 'browserContext')
    return holder === null ? null : waitDetail(kind, holder, `Run ${holder} uses the browser context.`)
  return status === 'needsSignIn' ? waitDetail(kind, null, 'The browser context needs a person to sign in.') : null
}

const findRemoteDeployment = statement<{ id: string }, [id: string | null]>(
  'SELECT id FROM deployments WHERE id = ? AND is_remote = 1',
)

const findRemoteWorkers = statement<{ workflows: string }, [accountId: string, now: number]>(
  'SELECT workflows FROM workers WHERE account_id = ? AND alive_until > ?',
)

/** Of a run of a workflow that workers outside of the service execute: that none is there which executes it. */
async function describeMissingWorker(read: Transaction, run: Run, now: number): Promise<WaitDetail | null> {
  const [deployment] = await read.all(findRemoteDeployment, [run.deploymentId])
  if (!deployment) return null
  const { workflowId, workflowVersion } = run
  for (const { workflows } of await read.all(findRemoteWorkers, [run.accountId, now])) {
    const registered: { id: string; version: string }[] = JSON.parse(workflows)
    if (registered.some(({ id, version }) => id === workflowId && hasSameMajor(version, workflowVersion))) return null
  }
  const message = `No worker is there that executes major version ${majorOf(workflowVersion)} of ${workflowId}.`
  return waitDetail('worker', workflowId, message)
}

/** Two tell whether it waits for several. */
const findOpenWaits = statement<
  Pick<RunWaitsTable, 'name' | 'deadline' | 'child_run_id'>,
  [runId: string, kind: WaitKind]
>("SELECT name, deadline, child_run_id FROM run_waits WHERE run_id = ? AND kind = ? AND status = 'open' LIMIT 2")

/** `null` if the wait has just ended. */
async function describeOpenWait(read: Transaction, kind: WaitKind, { id }: Run): Promise<WaitDetail | null> {
  const [wait, other] = await read.all(findOpenWaits, [id, kind])
  if (!wait) return null
  if (other) return waitDetail(kind, null, `The run waits for several ${severalOf[kind]}.`)
  const { name, deadline, child_run_id: called } = wait
  const until = deadline === null ? '' : ` until ${new Date(deadline).toISOString()}`
  const messages = {
    sleep: `The run sleeps${until}.`,
    answer: `The run waits for the answer “${name}”${until}.`,
    run: `The run waits for run ${called}, which it has called.`,
  }
  return waitDetail(kind, name, messages[kind])
}

const severalOf = { sleep: 'times', answer: 'answers', run: 'runs that it has called' }

/** Adds to a queued or waiting run the run or the worker that it waits for, and its place in the queue. */
export async function addWaitingDetails(read: Transaction, run: Run, now: number = Date.now()): Promise<void> {
  const { priority, id, waitsForGroup, waitingFor: kind } = run
  if (kind === 'browserContext' || kind === 'signIn') run.waitingForDetail = await describeContextWait(read, kind, run)
  if (kind === 'sleep' || kind === 'answer' || kind === 'run')
    run.waitingForDetail = await describeOpenWait(read, kind, run)
  if (kind === 'worker') run.waitingForDetail = await describeMissingWorker(read, run, now)
  if (!['worker', 'concurrencyLimit', 'throttle'].includes(kind ?? '')) return
  const { countAheadInGroup, countAheadOfReady } = read.statements
  const [ahead] =
    waitsForGroup === null
      ? await read.all(countAheadOfReady, [
          run.accountId,
          run.workflowId,
          priority,
          run.accountId,
          run.workflowId,
          priority,
          id,
        ])
      : await read.all(countAheadInGroup, [waitsForGroup, priority, waitsForGroup, priority, id])
  run.queuePosition = Math.min(positionMax, (ahead?.count ?? 0) + 1)
}
