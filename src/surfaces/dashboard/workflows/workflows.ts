/** The tab "Workflows": what is installed, and queueing a run of it by hand. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { maskedSecretDetail, type VariableError } from '../../../domain/workflows/workflows.ts'
import type { Parts } from '../dependencies.ts'
import { found, type Handler, type Page, type Visit } from '../visit.ts'
import { formAgain, misfitForm, newForm, type QueueForm, readForm, sentForm } from './queue-form.ts'
import { listView, workflowView } from './workflow-views.ts'

export function list({ workflows }: Parts): Handler {
  return async () => ({ title: 'Workflows', tab: 'workflows', body: listView(workflows.list()) })
}

export function show(parts: Parts): Handler {
  return async (visit) => {
    const { params, query } = visit
    const workflow = found(parts.workflows.get(params.id ?? ''))
    const from = await earlierRun(parts, visit, query.get('from'))
    const form = newForm(workflow, from, query.get('as') === 'json', query.get('browserContextId') ?? '')
    return workflowPage(parts, visit, form)
  }
}

export function queue(parts: Parts): Handler {
  return async (visit) => {
    const { account, user, query } = visit
    const workflow = found(parts.workflows.get(visit.params.id ?? ''))
    const from = await earlierRun(parts, visit, visit.form.get('from'))
    const form = sentForm(workflow, from, query.get('as') === 'json' ? 'json' : 'fields', visit.form)
    const read = readForm(form)
    if ('wrong' in read) return refused(parts, visit, read.wrong)
    const queued = await parts.runs.queue({ accountId: account.id, apiKeyId: null, userId: user.id }, read.request)
    switch (queued.kind) {
      case 'queued':
        return { location: `/runs/${queued.run.id}` }
      case 'variablesInvalid':
        return refused(parts, visit, misfitForm(form, from ? queued.errors.map(toBePutInAgain) : queued.errors))
      case 'idempotencyConflict':
        return repeated(parts, visit, form)
      case 'tooManyQueuedRuns':
        return tooMany(parts, visit, form, queued.queuedMax)
      case 'noSuchBrowserContext':
        // The field says so by itself, as it does when the context was deleted before the form was opened.
        return refused(parts, visit, form)
      case 'usesNoBrowser':
        return refused(
          parts,
          visit,
          form,
          'Nothing was queued: this workflow uses no browser, and takes no browser context.',
        )
      case 'noSuchWorkflow':
        return found<Page>(undefined)
    }
  }
}

/** An earlier run's secret goes only where it went before, unless the same user sends it elsewhere. */
function toBePutInAgain({ pointer, detail }: VariableError): VariableError {
  const words = 'is a secret, and has to be put in again: only its own user may send it along with other variables'
  return { pointer, detail: detail === maskedSecretDetail ? words : detail }
}

/** A run of this account and workflow that is to run again; there may be none, but no other. */
async function earlierRun({ runs }: Parts, { account, params }: Visit, id: string | null): Promise<Run | undefined> {
  if (!id) return undefined
  const run = found(await runs.get(account.id, id))
  return found(run.workflowId === params.id && run)
}

const mend = 'Nothing was queued. Mend what is marked below.'

function refused(parts: Parts, visit: Visit, form: QueueForm, refusal = mend): Promise<Page> {
  return workflowPage(parts, visit, formAgain(form), { status: 400, refusal })
}

/** Somebody has gone back to a form that has queued a run, and changed it: with a new key it may be sent. */
function repeated(parts: Parts, visit: Visit, form: QueueForm): Promise<Page> {
  const refusal = 'This form has queued a run already, with other values. Send it again to queue another one.'
  const { key } = newForm(form.workflow, form.from, false)
  return workflowPage(parts, visit, { ...formAgain(form), key }, { status: 409, refusal })
}

function tooMany(parts: Parts, visit: Visit, form: QueueForm, queuedMax: number): Promise<Page> {
  const refusal = `Nothing was queued: this account has ${queuedMax} queued runs, and may have no more. Send this again when some of them have started, or cancel some.`
  return workflowPage(parts, visit, formAgain(form), { status: 429, refusal })
}

async function workflowPage(parts: Parts, visit: Visit, form: QueueForm, { status = 200, refusal = '' } = {}) {
  const contexts = form.workflow.usesBrowser ? await choosable(parts, visit, form.browser.contextId) : []
  const body = workflowView({ form, refusal, contexts, executionUrl: parts.addresses().executionUrl })
  return { title: form.workflow.title, tab: 'workflows', body, status } satisfies Page
}

/** So many browser contexts can be chosen, the newest ones. */
const contextsMax = 100

/** Also the one that is chosen, however old it is. */
async function choosable({ browserContexts }: Parts, { account }: Visit, chosenId: string): Promise<BrowserContext[]> {
  const newest = (await browserContexts.list(account.id, { limit: contextsMax }))?.contexts ?? []
  if (chosenId === '' || newest.some(({ id }) => id === chosenId)) return newest
  const chosen = await browserContexts.get(account.id, chosenId)
  return chosen ? [...newest, chosen] : newest
}
