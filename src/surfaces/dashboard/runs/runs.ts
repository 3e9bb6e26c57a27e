/** The tab "Runs": the account's runs, what happens to each, and cancelling them. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Parts } from '../dependencies.ts'
import { found, type Handler, type Visit } from '../visit.ts'
import { attemptsOf } from './attempts.ts'
import { filterOf, requestOf, searchOf } from './filter.ts'
import { listView } from './list-view.ts'
import { queuersOf } from './queuers.ts'
import { shortId } from './run-labels.ts'
import { cancelView, runView } from './run-view.ts'

const runsPerPage = 50

/** How many lines of a run's log are shown. */
const logsMax = 200

export function list(parts: Parts): Handler {
  return async (visit) => {
    const { account, query } = visit
    const filter = filterOf(query)
    const cursor = query.get('cursor') ?? undefined
    const list = await parts.runs.list(account.id, { ...requestOf(filter), limit: runsPerPage, cursor })
    // The cursor of another list, as when somebody has changed the address by hand.
    if (!list) return { location: `/runs?${searchOf(filter)}` }
    const body = listView({
      ...list,
      filter,
      isFirstPage: cursor === undefined,
      workflows: parts.workflows.list(),
      queuerOf: await queuersOf(parts, account.id),
      executionUrl: parts.addresses().executionUrl,
    })
    return { title: 'Runs', tab: 'runs', body }
  }
}

export function show(parts: Parts): Handler {
  return async ({ account, query, params }) => {
    const id = params.id ?? ''
    const [shown, queuerOf, workers] = await Promise.all([
      parts.runs.getWithHistory(account.id, id, { logsMax }),
      queuersOf(parts, account.id),
      parts.workers.alive(),
    ])
    const { run, history } = found(shown)
    const { browserContextId } = run
    const body = runView({
      run,
      context: browserContextId === null ? undefined : await parts.browserContexts.get(account.id, browserContextId),
      history,
      attempts: attemptsOf(history.events),
      workflow: parts.workflows.get(run.workflowId),
      queuer: queuerOf(run),
      workers: workers.length,
      executionUrl: parts.addresses().executionUrl,
      done: query.get('done') ?? '',
    })
    return { title: `Run ${shortId(run.id)}`, tab: 'runs', body }
  }
}

export function cancel(parts: Parts): Handler {
  return async (visit) => {
    const run = await ownRun(parts, visit)
    if (isFinal(run.status)) return { location: `/runs/${run.id}?done=finished` }
    const body = cancelView(run, parts.workflows.get(run.workflowId))
    return { title: 'Cancel a run', tab: 'runs', body }
  }
}

export function submitCancellation(parts: Parts): Handler {
  return async ({ account, params }) => {
    const run = found(await parts.runs.cancel(account.id, params.id ?? ''))
    const wasFinished = isFinal(run.status) && run.status !== 'cancelled'
    return { location: `/runs/${run.id}${wasFinished ? '?done=finished' : ''}` }
  }
}

async function ownRun({ runs }: Parts, { account, params }: Visit): Promise<Run> {
  return found(await runs.get(account.id, params.id ?? ''))
}
