/** The tab "Runs": the account's runs, one run in detail, cancelling and deleting it. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { orNotFound, type PageHandler } from '../page-handler.ts'
import { parseAttempts } from './run-attempts.ts'
import { parseRunFilter, toListRequest, toRunQuery } from './run-filter.ts'
import { describeStatus, readQueuerLabels, shortId } from './run-labels.ts'
import { renderRunList } from './run-list-template.ts'
import { renderCancellation, renderRun, renderRunDeletion } from './run-template.ts'

const runsPerPage = 50
const logLinesMax = 200

export const listRuns: PageHandler = async ({ account, query }, deps) => {
  const filter = parseRunFilter(query)
  const found = await deps.runs.get(account.id, filter.search)
  if (found) return { location: `/runs/${found.id}` }
  const cursor = query.get('cursor') ?? undefined
  const list = await deps.runs.list(account.id, { ...toListRequest(filter), limit: runsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!list) return { location: `/runs?${toRunQuery(filter)}` }
  const body = renderRunList({
    ...list,
    filter,
    isFirstPage: cursor === undefined,
    done: query.get('done') ?? '',
    bulkActions: await deps.bulkActions.unfinished(account.id),
    workflows: deps.workflows.current(account.id).list(),
    queuerLabel: await readQueuerLabels(deps, account.id),
    executionUrl: deps.addresses().executionUrl,
  })
  return { title: 'Runs', tab: 'runs', body }
}

export const showRun: PageHandler = async ({ account, user, query, params }, deps) => {
  const [found, queuerLabel, workers] = await Promise.all([
    deps.runs.getWithHistory(account.id, params.id ?? '', { logsMax: logLinesMax }),
    readQueuerLabels(deps, account.id),
    deps.workers.alive(),
  ])
  const { run, history } = orNotFound(found)
  const { browserContextId } = run
  const workflow = deps.workflows.current(account.id).get(run.workflowId)
  const body = renderRun({
    run,
    context: browserContextId === null ? undefined : await deps.browserContexts.get(account.id, browserContextId),
    history,
    attempts: parseAttempts(history.events),
    workflow,
    queuer: queuerLabel(run),
    canceller: isCancelled(run) ? queuerLabel(run.cancelledBy) : undefined,
    workers: workers.length,
    userId: user.id,
    executionUrl: deps.addresses().executionUrl,
    done: query.get('done') ?? '',
  })
  const { tone, label } = describeStatus(run)
  return { title: `${label} · ${workflow?.title ?? run.workflowId} ${shortId(run.id)}`, icon: tone, tab: 'runs', body }
}

/** Whether it is known who cancelled the run. */
function isCancelled({ cancelledBy: { apiKeyId, userId } }: Run): boolean {
  return apiKeyId !== null || userId !== null
}

export const confirmCancellation: PageHandler = async ({ account, params }, { runs, workflows }) => {
  const run = orNotFound(await runs.get(account.id, params.id ?? ''))
  if (isFinal(run.status)) return { location: `/runs/${run.id}?done=finished` }
  const workflow = workflows.current(account.id).get(run.workflowId)
  return { title: 'Cancel run', tab: 'runs', body: renderCancellation(run, workflow) }
}

export const cancelRun: PageHandler = async ({ account, user, params }, { runs }) => {
  const run = orNotFound(await runs.cancel(account.id, params.id ?? '', { userId: user.id }))
  const wasFinished = isFinal(run.status) && run.status !== 'cancelled'
  return { location: `/runs/${run.id}${wasFinished ? '?done=finished' : ''}` }
}

export const confirmRunDeletion: PageHandler = async ({ account, params }, { runs, workflows }) => {
  const run = orNotFound(await runs.get(account.id, params.id ?? ''))
  if (!isFinal(run.status)) return { location: `/runs/${run.id}?done=unfinished` }
  const workflow = workflows.current(account.id).get(run.workflowId)
  return { title: 'Delete run', tab: 'runs', body: renderRunDeletion(run, workflow) }
}

export const deleteRun: PageHandler = async ({ account, params, actor }, { runs }) => {
  const deleted = orNotFound(await runs.delete(account.id, params.id ?? '', actor))
  return { location: deleted === 'deleted' ? '/runs?done=deleted' : `/runs/${deleted.id}?done=unfinished` }
}
