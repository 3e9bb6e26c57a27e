/** The tab "Workflows": the deployed workflows, and queueing a run of one. */
import { shellCommand } from '../../../config/command-line.ts'
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { describeRefusedRepeat } from '../../../domain/queue/queue-problems.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Throttle } from '../../../domain/workflows/workflow-limits.ts'
import { sendWorkflowDocs } from '../../docs/workflow-pages.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatDuration } from '../format.ts'
import {
  backLink,
  copyable,
  emptyState,
  type Fact,
  facts,
  type Html,
  heading,
  html,
  nothing,
  notice,
  table,
} from '../html.ts'
import {
  orNotFound,
  type Page,
  type PageHandler,
  PageNotFound,
  type PageRequest,
  type StreamHandler,
} from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { queueCommand } from './curl-commands.ts'
import {
  newQueueForm,
  type QueueForm,
  readQueueForm,
  toQueueRequest,
  withErrors,
  withoutSecrets,
} from './queue-form.ts'
import { renderQueueForm } from './queue-form-template.ts'
import { contextOptions, initialStart, readStart, withRefusal } from './queue-options.ts'

export const listWorkflows: PageHandler = async ({ account, user, environments, query }, deps) => {
  const workflows = deps.workflows.current(account.id).list()
  const lead = html`The workflows that this account can run, as they were deployed.`
  const list = workflows.length === 0 ? noWorkflows : renderWorkflowTable(user, workflows)
  const mayPromote = environments.length > 1 && may(user, 'POST /promote')
  const actions = html`<a class="button" href="/promote">Promote</a>`
  const promoted = environments.find(({ environment }) => environment === query.get('promotedTo'))
  const body = html`${heading('Workflows', { lead, ...(mayPromote && { actions }) })}${promoted?.environment ? html` ${notice('good', `${promoted.environment} serves the workflows of ${account.environment} now.`)}` : nothing} ${list}`
  return { title: 'Workflows', tab: 'workflows', body }
}

export const showWorkflow: PageHandler = async (request, deps) => {
  const { account, params, query } = request
  const workflow = orNotFound(deps.workflows.current(account.id).get(params.id ?? ''))
  const from = await findEarlierRun(request, deps, query.get('from'))
  const form = newQueueForm(workflow, from, query.get('as') === 'json', query.get('browserContextId') ?? '')
  return workflowPage(request, deps, { ...form, start: await initialStart(deps.runs, from) })
}

export const showWorkflowDocs: StreamHandler = async ({ account, tenant }, deps, request, response) => {
  await sendWorkflowDocs(response, request.path.slice('/docs/workflows'.length), {
    docs: deps.builtDocs,
    workflows: deps.workflows.current(account.id),
    executionUrl: deps.addresses().executionUrl,
    tenant,
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
      return refuse(withErrors(form, queued.errors))
    case 'idempotencyConflict':
    case 'runDeleted': {
      const earlier = queued.kind === 'runDeleted' ? 'a run, which was deleted' : 'a run with other values'
      const error = `This form already queued ${earlier}. Submit it again to queue another run.`
      // The user went back to a submitted form and changed it. The new key lets them submit it.
      return refuse({ ...form, key: newQueueForm(workflow, from, false).key }, 409, error)
    }
    case 'tooManyQueuedRuns': {
      const limit = `this account has reached its limit of ${queued.queuedMax} queued runs`
      return refuse(form, 429, `The run was not queued: ${limit}. Try again when some have started, or cancel some.`)
    }
    case 'expiresTooSoon':
    case 'noSuchBrowserContext':
      // The form's field reports the error itself.
      return refuse(form)
    case 'usesNoBrowser':
      return refuse(form, 400, 'The run was not queued: this workflow uses no browser, so it takes no browser context.')
    case 'usesNoConcurrencyKey':
      return refuse(form, 400, 'The run was not queued: this workflow takes no concurrency key any more.')
    case 'optionsInvalid':
      return refuse(form, 400, `The run was not queued. ${describeRefusedRepeat(queued)}`)
    case 'noSuchWorkflow':
      throw new PageNotFound()
  }
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
  const { id, title, description } = workflow
  const actions = html`<a class="button secondary" href="/docs/workflows/${id}">Docs</a>
    <a class="button secondary" href="/runs?workflow=${id}">View runs</a>`
  const hasContext = contexts.some(({ id: contextId }) => contextId === context.contextId)
  const variables = exampleVariables(workflow.variables)
  const command = queueCommand(deps.addresses().executionUrl, id, variables, {
    options: hasContext ? contextOptions(context) : {},
  })
  const contextHint = html`<p class="muted">The run starts with an empty browser. To start with a
    <a href="/browser-contexts">browser context</a>, copy the command from its page.</p>`
  const body = html`${backLink('/workflows', 'Workflows')}
    ${heading(title, { ...(description !== null && { lead: description }), actions })}
    <section class="card">${facts([
      ...workflowFacts(workflow, deploymentId, deps.workflows.isRemote?.(request.account.id, id) ?? false),
      ...(await declaredFacts(request, workflow, deps)),
    ])}</section>
    <div class="columns">
      <div>${may(request.user, 'POST /workflows/:id') ? renderQueueForm(form, error, contexts) : noQueueing(request.user)}</div>
      <div>
        <section class="card">
          <h2>Run from a program</h2>
          ${copyable('command', command, { label: 'Copy command' })}
          <p class="muted">Replace <code>&lt;API_KEY&gt;</code> with an <a href="/api-keys">API key</a>.</p>
          ${workflow.usesBrowser && !hasContext ? contextHint : nothing}
        </section>
        <section class="card">
          <h2>Schemas</h2>
          <details><summary>Output</summary>${copyable('output-schema', formatJson(workflow.output))}</details>
          <details><summary>Variables</summary>${copyable('variables-schema', formatJson(workflow.variables))}</details>
        </section>
      </div>
    </div>`
  return { title, tab: 'workflows', body, status }
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

// Templates of the list of workflows and of one workflow's page.

function noQueueing({ role }: User): Html {
  return html`<section class="card" id="queue"><h2>Run</h2><p>The role operator can queue runs. Your role is ${role}.</p></section>`
}

const noWorkflows = emptyState(
  'No workflows',
  html`<p>Deploy a directory of workflows: <code>${shellCommand('workflows deploy DIR')}</code>.</p>
    <p>The directory <code>examples/workflows</code> of execution-service has workflows to start from.</p>`,
)

function renderWorkflowTable(user: User, workflows: Workflow[]): Html {
  const rows = workflows.map(({ id, title, description, version }) => [
    html`<div class="stack">
      <a href="/workflows/${id}"><strong>${title}</strong></a>
      ${description === null ? nothing : html`<small>${description}</small>`}
    </div>`,
    html`<code>${id}</code>`,
    version,
    html`<span class="row-actions">
      ${may(user, 'POST /workflows/:id') ? html`<a href="/workflows/${id}#queue" aria-label="Run ${title}">Run</a>` : nothing}
      <a href="/runs?workflow=${id}" aria-label="View runs of ${title}">View runs</a>
    </span>`,
  ])
  return table(['Workflow', 'ID', 'Version', ''], rows, 'Workflows')
}

function workflowFacts(workflow: Workflow, deploymentId: string | null, isRemote: boolean): Fact[] {
  const { id, version, timeLimitSeconds, usesBrowser } = workflow
  return [
    ['ID', html`<code>${id}</code>`],
    ['Version', version],
    ...(deploymentId === null ? [] : [['Deployment', html`<code>${deploymentId.slice(0, 12)}</code>`] satisfies Fact]),
    ...(isRemote
      ? [['Executed by', html`<a href="/settings/workers">workers</a> outside of the service`] satisfies Fact]
      : []),
    ['Time limit', `${formatDuration(timeLimitSeconds * 1000)} per attempt`],
    ['Concurrency', describeConcurrency(workflow)],
    ...(workflow.throttle ? [['Rate', describeThrottle(workflow.throttle)] satisfies Fact] : []),
    ['Retries', describeRetries(workflow)],
    ...(usesBrowser ? [['Browser', 'one per run'] satisfies Fact] : []),
  ]
}

/** The secrets and settings that its runs get, and which of them are missing. */
async function declaredFacts({ account, user }: PageRequest, workflow: Workflow, deps: Dependencies): Promise<Fact[]> {
  const { id: accountId } = account
  const { secrets = [], settings = {} } = workflow
  const declared = { secret: secrets, setting: Object.keys(settings) }
  return Promise.all(
    (['secret', 'setting'] as const)
      .filter((kind) => declared[kind].length > 0)
      .map(async (kind): Promise<Fact> => {
        const stored = new Set((await deps.accountValues.listAll(accountId, kind)).map(({ name }) => name))
        const lacking = declared[kind].filter((name) => !stored.has(name))
        const external = await deps.declaredValues.findExternal(accountId, kind === 'secret' ? lacking : [])
        const missing = lacking.filter((name) => !external.names.has(name))
        const items = declared[kind].map((name, index) => {
          const link = html`: <a href="/settings/secrets?kind=${kind}&amp;name=${name}#field-${kind}Value" aria-label="Store ${name}">store it</a>`
          const state = html` (missing${may(user, 'POST /settings/secrets') ? link : nothing})`
          return html`${index > 0 ? ', ' : ''}<code>${name}</code>${missing.includes(name) ? state : nothing}`
        })
        return [kind === 'secret' ? 'Secrets' : 'Settings', html`${items} ${external.problem}`]
      }),
  )
}

function describeConcurrency(workflow: Workflow): string {
  const { concurrency } = workflow
  if (!concurrency) return 'limited by worker slots'
  return `${concurrency.limit} at a time${scopes[concurrency.per]}`
}

const scopes = { workflow: '', account: ' in each account', key: ' for each concurrency key' }

function describeThrottle({ limit, periodSeconds, per }: Throttle): string {
  return `${limit} ${limit === 1 ? 'start' : 'starts'} in ${formatDuration(periodSeconds * 1000)}${scopes[per]}`
}

/** Further waits are abbreviated. */
const waitsMax = 4

function describeRetries({ retry }: Workflow): string {
  const { maxAttempts, backoffSeconds, backoffFactor } = retry
  if (maxAttempts === 1) return 'none'
  const count = Math.min(maxAttempts - 1, waitsMax)
  const waits = Array.from({ length: count }, (_, index) => {
    const seconds = backoffSeconds * backoffFactor ** index
    return seconds === 0 ? 'no wait' : formatDuration(seconds * 1000)
  })
  const isConstant = new Set(waits).size === 1
  const described = isConstant ? waits.slice(0, 1) : [...waits, ...(maxAttempts - 1 > count ? ['…'] : [])]
  return `up to ${maxAttempts} attempts, with ${described.join(', ')} between them`
}

function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}
