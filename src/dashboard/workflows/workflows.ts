/** The tab "Workflows": what is installed, and queueing a run of it by hand. */
import type { Run } from '../../runs/run.ts'
import { isMask, type Misfit } from '../../workflows/workflows.ts'
import type { Parts } from '../parts.ts'
import { found, type Handler, type Page, type Visit } from '../visit.ts'
import { formAgain, misfitForm, newForm, type QueueForm, readForm, sentForm } from './queue-form.ts'
import { listView, workflowView } from './views.ts'

export function list({ workflows }: Parts): Handler {
  return async () => ({ title: 'Workflows', tab: 'workflows', body: listView(workflows.list()) })
}

export function show(parts: Parts): Handler {
  return async (visit) => {
    const workflow = found(parts.workflows.get(visit.params.id ?? ''))
    const from = await earlierRun(parts, visit, visit.query.get('from'))
    return workflowPage(parts, newForm(workflow, from, visit.query.get('as') === 'json'))
  }
}

export function queue(parts: Parts): Handler {
  return async (visit) => {
    const { account, user, query } = visit
    const workflow = found(parts.workflows.get(visit.params.id ?? ''))
    const from = await earlierRun(parts, visit, visit.form.get('from'))
    const form = sentForm(workflow, from, query.get('as') === 'json' ? 'json' : 'fields', visit.form)
    const read = readForm(form)
    if ('wrong' in read) return refused(parts, read.wrong)
    const queued = await parts.runs.queue({ accountId: account.id, apiKeyId: null, userId: user.id }, read.request)
    switch (queued.kind) {
      case 'queued':
        return { location: `/runs/${queued.run.id}` }
      case 'variablesMisfit':
        return refused(parts, misfitForm(form, from ? queued.misfits.map(toBePutInAgain) : queued.misfits))
      case 'idempotencyConflict':
        return repeated(parts, form)
      case 'noSuchWorkflow':
      case 'noSuchBrowserContext':
      case 'usesNoBrowser':
        return found<Page>(undefined)
    }
  }
}

/** An earlier run's secret goes only where it went before, unless the same user sends it elsewhere. */
function toBePutInAgain({ pointer, detail }: Misfit): Misfit {
  const words = 'is a secret, and has to be put in again: only its own user may send it along with other variables'
  return { pointer, detail: detail === isMask ? words : detail }
}

/** A run of this account and workflow that is to run again; there may be none, but no other. */
async function earlierRun({ runs }: Parts, { account, params }: Visit, id: string | null): Promise<Run | undefined> {
  if (!id) return undefined
  const run = found(await runs.get(account.id, id))
  return found(run.workflowId === params.id && run)
}

function refused(parts: Parts, form: QueueForm): Page {
  return workflowPage(parts, formAgain(form), {
    status: 400,
    refusal: 'Nothing was queued. Mend what is marked below.',
  })
}

/** Somebody has gone back to a form that has queued a run, and changed it: with a new key it may be sent. */
function repeated(parts: Parts, form: QueueForm): Page {
  const refusal = 'This form has queued a run already, with other values. Send it again to queue another one.'
  const { key } = newForm(form.workflow, form.from, false)
  return workflowPage(parts, { ...formAgain(form), key }, { status: 409, refusal })
}

function workflowPage(parts: Parts, form: QueueForm, { status = 200, refusal = '' } = {}): Page {
  const body = workflowView(form, refusal, parts.addresses().executionUrl)
  return { title: form.workflow.title, tab: 'workflows', body, status }
}
