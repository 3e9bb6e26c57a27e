/** The tab "Workflows": the deployed workflows, and queueing a run of one. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { maskedSecretDetail, type VariableError } from '../../../domain/workflows/workflows.ts'
import { sendWorkflowDocs } from '../../docs/workflow-pages.ts'
import type { Dependencies } from '../dependencies.ts'
import {
  orNotFound,
  type Page,
  type PageHandler,
  PageNotFound,
  type PageRequest,
  type StreamHandler,
} from '../page-handler.ts'
import {
  newQueueForm,
  type QueueForm,
  readQueueForm,
  toQueueRequest,
  withErrors,
  withoutSecrets,
} from './queue-form.ts'
import { initialStart, readStart, withRefusal } from './start-choice.ts'
import { renderWorkflow, renderWorkflowList } from './workflow-templates.ts'

export const listWorkflows: PageHandler = async ({ account }, { workflows }) => ({
  title: 'Workflows',
  tab: 'workflows',
  body: renderWorkflowList(workflows.current(account.id).list()),
})

export const showWorkflow: PageHandler = async (request, deps) => {
  const { account, params, query } = request
  const workflow = orNotFound(deps.workflows.current(account.id).get(params.id ?? ''))
  const from = await findEarlierRun(request, deps, query.get('from'))
  const form = newQueueForm(workflow, from, query.get('as') === 'json', query.get('browserContextId') ?? '')
  return workflowPage(request, deps, { ...form, start: await initialStart(deps.runs, from) })
}

export const showWorkflowDocs: StreamHandler = async ({ account }, deps, request, response) => {
  await sendWorkflowDocs(response, request.path.slice('/docs/workflows'.length), {
    docs: deps.builtDocs,
    workflows: deps.workflows.current(account.id),
    executionUrl: deps.addresses().executionUrl,
  })
}

export const queueRun: PageHandler = async (request, deps) => {
  const { account, user, query, params } = request
  const workflow = orNotFound(deps.workflows.current(account.id).get(params.id ?? ''))
  const from = await findEarlierRun(request, deps, request.form.get('from'))
  const read = readQueueForm(workflow, from, query.get('as') === 'json' ? 'json' : 'fields', request.form)
  const form = { ...read, start: await readStart(deps.runs, from, request.form) }
  const refuse = (shown: QueueForm, status = 400, error = 'The run was not queued. Fix the errors below.') =>
    workflowPage(request, deps, withoutSecrets(shown), { status, error })
  const parsed = toQueueRequest(form)
  if ('invalid' in parsed) return refuse(parsed.invalid)
  const queuer = { accountId: account.id, apiKeyId: null, userId: user.id }
  const start =
    from && form.start?.isChosen
      ? await deps.runs.readStart(from, form.start.step, queuer, parsed.request.variables)
      : undefined
  if (start && 'refused' in start) return refuse({ ...form, start: form.start && withRefusal(form.start, start) })
  const queued = await deps.runs.queue(queuer, { ...parsed.request, start })
  switch (queued.kind) {
    case 'queued':
      return { location: `/runs/${queued.run.id}` }
    case 'variablesInvalid':
      return refuse(withErrors(form, from ? queued.errors.map(explainMask) : queued.errors))
    case 'idempotencyConflict':
      // The user went back to a submitted form and changed it. The new key lets them submit it.
      return refuse(
        { ...form, key: newQueueForm(workflow, from, false).key },
        409,
        'This form already queued a run with other values. Submit it again to queue another run.',
      )
    case 'runDeleted':
      return refuse(
        { ...form, key: newQueueForm(workflow, from, false).key },
        409,
        'This form already queued a run, which was deleted. Submit it again to queue another run.',
      )
    case 'tooManyQueuedRuns':
      return refuse(
        form,
        429,
        `The run was not queued: this account has reached its limit of ${queued.queuedMax} queued runs. Try again when some have started, or cancel some.`,
      )
    case 'noSuchBrowserContext':
      // The form's field reports the deleted context itself.
      return refuse(form)
    case 'usesNoBrowser':
      return refuse(form, 400, 'The run was not queued: this workflow uses no browser, so it takes no browser context.')
    case 'usesNoConcurrencyKey':
      return refuse(form, 400, 'The run was not queued: this workflow takes no concurrency key any more.')
    case 'noSuchWorkflow':
      throw new PageNotFound()
  }
}

/** A masked secret is resolved only for unchanged variables, or for the user who queued the earlier run. */
function explainMask({ pointer, detail }: VariableError): VariableError {
  const explanation =
    'is a secret that must be entered again, because only its own user can reuse it with other variables'
  return { pointer, detail: detail === maskedSecretDetail ? explanation : detail }
}

/** The run to run again. @throws {PageNotFound} unless it is a run of this account and workflow. */
async function findEarlierRun({ account, params }: PageRequest, { runs }: Dependencies, id: string | null) {
  if (!id) return undefined
  const run: Run = orNotFound(await runs.get(account.id, id))
  return orNotFound(run.workflowId === params.id && run)
}

async function workflowPage(
  request: PageRequest,
  deps: Dependencies,
  form: QueueForm,
  { status = 200, error = '' } = {},
): Promise<Page> {
  const { workflow, context } = form
  const contexts = workflow.usesBrowser ? await listSelectableContexts(request, deps, context.contextId) : []
  const deploymentId = deps.workflows.current(request.account.id).deploymentOf(workflow.id)
  const { executionUrl } = deps.addresses()
  const body = renderWorkflow({ form, error, contexts, executionUrl, deploymentId })
  return { title: workflow.title, tab: 'workflows', body, status }
}

const selectableContextsMax = 100

/** The newest contexts, and the selected one even if it is older. */
export async function listSelectableContexts(
  { account }: PageRequest,
  { browserContexts }: Dependencies,
  selectedId: string,
): Promise<BrowserContext[]> {
  const newest = (await browserContexts.list(account.id, { limit: selectableContextsMax }))?.contexts ?? []
  if (selectedId === '' || newest.some(({ id }) => id === selectedId)) return newest
  const selected = await browserContexts.get(account.id, selectedId)
  return selected ? [...newest, selected] : newest
}
