/** Bulk actions on the runs of a filter: a preview with their number, the start, and the progress. */
import { v7 as uuid } from 'uuid'
import { type BulkActionKind, type BulkFilter, changeableStatuses } from '../../../domain/bulk-actions/bulk-action.ts'
import { unfinishedMax } from '../../../domain/bulk-actions/bulk-actions.ts'
import type { Dependencies } from '../dependencies.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { countedMax, renderBulkAction, renderPreview, titles } from './bulk-action-templates.ts'
import { parseRunFilter, type RunFilter, toListRequest } from './run-filter.ts'

export const previewCancel: PageHandler = (request, deps) => preview('cancel', request, deps)
export const previewRerun: PageHandler = (request, deps) => preview('rerun', request, deps)
export const startCancel: PageHandler = (request, deps) => start('cancel', request, deps)
export const startRerun: PageHandler = (request, deps) => start('rerun', request, deps)

export const showBulkAction: PageHandler = async ({ account, params }, { bulkActions, workflows }) => {
  const action = orNotFound(await bulkActions.get(account.id, params.id ?? ''))
  const { workflowId = '' } = action.filter
  const workflow = workflows.current(account.id).get(workflowId)?.title ?? workflowId
  return { title: titles[action.kind], tab: 'runs', body: renderBulkAction(action, workflow) }
}

async function preview(
  kind: BulkActionKind,
  { account, query }: PageRequest,
  { bulkActions, workflows }: Dependencies,
  { id = uuid(), error = '', status = 200 } = {},
): Promise<Page> {
  const filter = parseRunFilter(query)
  const given = toBulkFilter(kind, filter)
  const count = given && (await bulkActions.count(account.id, kind, given, countedMax + 1))
  const workflow = workflows.current(account.id).get(filter.workflow)?.title ?? filter.workflow
  return { title: titles[kind], tab: 'runs', body: renderPreview({ kind, filter, workflow, count, id, error }), status }
}

/** The filter is in the form's address, so that what is started is what the preview has shown. */
async function start(kind: BulkActionKind, request: PageRequest, deps: Dependencies) {
  const { account, user, actor, query, form } = request
  const id = formId(form)
  const filter = toBulkFilter(kind, parseRunFilter(query))
  if (!filter) return preview(kind, request, deps, { id, status: 400 })
  const by = { apiKeyId: null, userId: user.id, usesBrowserContexts: true }
  // Submitting the form twice starts one action.
  const created = await deps.bulkActions.create(
    account.id,
    { kind, filter, ...by, idempotencyKey: `form ${id}` },
    actor,
  )
  if (created.kind === 'created') return { location: `/runs/bulk-actions/${created.action.id}` }
  const error = created.kind === 'tooManyBulkActions' ? tooMany : 'This form was submitted with other filters.'
  return preview(kind, request, deps, { error, status: 409 })
}

const tooMany = `The account has ${unfinishedMax} bulk actions that are not finished. Try again when one has finished.`

/** Returns `undefined` if no runs can match: a search cannot be used, or no chosen status fits the action. */
function toBulkFilter(kind: BulkActionKind, filter: RunFilter): BulkFilter | undefined {
  const { workflowId, createdAfter, createdBefore } = toListRequest(filter)
  const changeable = changeableStatuses(kind)
  const status = filter.statuses.length === 0 ? changeable : filter.statuses.filter((each) => changeable.includes(each))
  if (filter.search !== '' || status.length === 0) return undefined
  return {
    status,
    ...(workflowId !== undefined && { workflowId }),
    ...(createdAfter !== undefined && { createdAfter: new Date(createdAfter).toISOString() }),
    ...(createdBefore !== undefined && { createdBefore: new Date(createdBefore).toISOString() }),
  }
}
