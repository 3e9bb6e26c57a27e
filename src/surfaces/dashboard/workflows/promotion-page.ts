/** Promotes the workflows of the environment that the session shows to another one. */
import type { Account } from '../../../domain/accounts/accounts.ts'
import { describeBreaking, describeChanges } from '../../../domain/deployments/evolution.ts'
import { type Promotable, promote, readPromotable } from '../../../domain/deployments/promotion.ts'
import { sizeOfFiles, snapshotId } from '../../../domain/deployments/snapshot.ts'
import type { Dependencies } from '../dependencies.ts'
import { backLink, emptyState, facts, type Html, heading, html, nothing, notice, selectField } from '../html.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'

const path = '/promote'

export const showPromotion: PageHandler = async (request, deps) => {
  const targets = findTargets(request)
  const [only] = targets
  const name = request.query.get('to') ?? (targets.length === 1 ? only?.environment : null)
  const promotable = await readPromotable(deps.deployments, request.account.id)
  if (!promotable) return page(request, nothingToPromote(request.account))
  if (name === null) return page(request, renderTargets(targets))
  const target = orNotFound(targets.find(({ environment }) => environment === name))
  return comparisonPage(request, deps, { target, promotable })
}

/** Activates what the form has shown, even if another deployment has become current since. */
export const promoteWorkflows: PageHandler = async (request, deps) => {
  const { account, actor, form } = request
  const target = orNotFound(findTargets(request).find(({ environment }) => environment === form.get('to')))
  const promotable = orNotFound(await readPromotable(deps.deployments, account.id, form.get('deploymentId') ?? ''))
  const size = sizeOfFiles(promotable.snapshot)
  deps.usage.require(target.id, size)
  const { result } = await promote(deps.deployments, promotable, {
    ...{ from: account.environment ?? '', accountId: target.id, by: actor },
    allowBreaking: form.get('allowBreaking') === 'on',
  })
  if (!result) return comparisonPage(request, deps, { target, promotable, isRefused: true })
  if (result.activated) deps.usage.add(target.id, size)
  return { location: `/workflows?promotedTo=${target.environment}` }
}

/** The other environments of the account. @throws {PageNotFound} for an account with one environment. */
function findTargets({ environments, account }: PageRequest): Account[] {
  return orNotFound(environments.length > 1 && environments.filter(({ id }) => id !== account.id))
}

interface Comparison {
  target: Account
  promotable: Promotable
  /** It was refused, because it breaks callers. */
  isRefused?: boolean
}

async function comparisonPage(request: PageRequest, deps: Dependencies, comparison: Comparison): Promise<Page> {
  const { target, promotable, isRefused = false } = comparison
  const { source, snapshot, contentHash } = promotable
  const { deployments, declaredValues } = deps
  const [current] = await deployments.listActivations(target.id)
  const isSame = current?.deploymentId === snapshotId(snapshot, target.id)
  const breaking = describeBreaking(
    await deployments.findBreakingVersions(snapshot, target.id),
    'Allow breaking changes',
  )
  const workflows = await deployments.findWorkflows(source.id)
  const missing = workflows ? await declaredValues.findMissing(target.id, workflows) : []
  const content = html`${isRefused ? notice('bad', 'Nothing was promoted: it would break callers.') : nothing}
    <section class="card">${facts([
      ['From', request.account.environment ?? ''],
      ['To', target.environment ?? ''],
      ['Deployment', html`<code>${source.id.slice(0, 12)}</code>`],
      ['Content hash', html`<code>${contentHash.slice(0, 12)}</code>`],
    ])}</section>
    ${isSame ? nothing : html`<h2>Changes in ${target.environment}</h2> ${renderLines([...describeChanges(deployments.findChanges(snapshot, target.id))])}`}
    ${breaking.length > 0 ? html`${notice('warning', 'It breaks callers.')} ${renderLines(breaking)}` : nothing}
    ${missing.map(({ workflowId, detail }) => notice('warning', `Runs of ${workflowId} will wait: ${detail}`))}
    ${isSame ? notice('quiet', `${target.environment} already serves this.`) : renderPromoteForm(comparison, breaking.length > 0)}`
  return page(request, content, isRefused ? 409 : 200)
}

function renderPromoteForm({ target: { environment }, promotable }: Comparison, isBreaking: boolean): Html {
  return html`<form method="post" action="${path}" class="card">
    <input type="hidden" name="to" value="${environment}" />
    <input type="hidden" name="deploymentId" value="${promotable.source.id}" />
    ${isBreaking ? html`<label class="check"><input type="checkbox" name="allowBreaking" /> Allow breaking changes</label>` : nothing}
    <p class="muted">Queued runs of ${environment} are executed by the deployment that they were queued under.</p>
    <div class="buttons"><button>Promote to ${environment}</button><a href="/workflows">Cancel</a></div>
  </form>`
}

function renderLines(lines: string[]): Html {
  return html`<pre tabindex="0"><code>${lines.map((line) => line.replace(/^ {2}/, '')).join('\n')}</code></pre>`
}

function renderTargets(targets: Account[]): Html {
  const options = targets.map(({ environment }) => ({ value: environment ?? '', title: environment ?? '' }))
  return html`<form method="get" action="${path}" class="card">
    ${selectField({ name: 'to', label: 'To', value: options[0]?.value ?? '', options })}
    <div class="buttons"><button>Compare</button><a href="/workflows">Cancel</a></div>
  </form>`
}

function nothingToPromote({ environment }: Account): Html {
  const advice = 'It serves only workflows that all accounts see. Deploy some for this environment.'
  return emptyState(`${environment} has no deployment`, advice)
}

function page({ account }: PageRequest, content: Html, status = 200): Page {
  const body = html`${backLink('/workflows', 'Workflows')} ${heading(`Promote from ${account.environment}`)} ${content}`
  return { title: 'Promote', tab: 'workflows', body, status }
}
