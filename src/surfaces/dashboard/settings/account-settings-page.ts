/** Account settings: the name, and whether API keys can be limited to scopes. */
import type { Account } from '../../../domain/accounts/accounts.ts'
import { parseName, UserError } from '../../../domain/accounts/user.ts'
import type { Retention } from '../../../maintenance/retention.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { attribute, type Fact, facts, type Html, html, inputField, nothing, notice } from '../html.ts'
import { settingsPage } from '../layout.ts'
import type { Page, PageHandler, PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'

export const showAccount: PageHandler = async (request, deps) => {
  const { account, user } = request
  if (may(user, 'POST /settings')) return accountForm(request, deps, account)
  const content = facts([
    ['Account', account.name],
    ['Scopes', account.scopesEnabled ? 'API keys can be limited to scopes' : 'off'],
    ['Two-factor authentication', account.secondFactorRequired ? 'required' : 'optional'],
    ...readOnlyFacts(request, deps.retention),
  ])
  return settingsPage(request, '/settings', content)
}

export const changeAccount: PageHandler = async (request, deps) => {
  const { account, form, actor } = request
  const isOn = (name: string) => form.get(name) === 'on'
  const switches = { scopesEnabled: isOn('scopesEnabled'), secondFactorRequired: isOn('secondFactorRequired') }
  const changes = { name: form.get('name') ?? '', ...switches }
  try {
    await deps.accounts.update(account.ownerId, { ...changes, name: parseName(changes.name) }, actor)
    return { location: '/settings?done=saved' }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return accountForm(request, deps, changes, error.message)
  }
}

function accountForm(
  request: PageRequest,
  { retention }: Dependencies,
  values: Pick<Account, 'name' | 'scopesEnabled' | 'secondFactorRequired'>,
  error?: string,
): Page {
  const content = html`${request.query.get('done') === 'saved' ? notice('good', 'Changes saved.') : nothing}
    <form method="post" action="/settings" class="card">
      ${inputField({ name: 'name', label: 'Account name', value: values.name, error, required: true, maxlength: 100 })}
      ${renderSwitch('scopesEnabled', 'Scopes', values.scopesEnabled, 'Allow API keys to be limited to scopes', 'If you turn this off, existing keys keep their scopes.')}
      ${renderSwitch('secondFactorRequired', 'Two-factor authentication', values.secondFactorRequired, 'Require it for every member', 'Members without it must set it up before they can continue.')}
      <div class="buttons"><button>Save changes</button></div>
    </form>
    ${facts(readOnlyFacts(request, retention))}${request.environments.length > 1 ? nothing : addEnvironmentLink}`
  return settingsPage(request, '/settings', content, error === undefined ? 200 : 400)
}

const addEnvironmentLink = html`<p><a href="/settings/environments">Add an environment, such as staging</a></p>`

function renderSwitch(name: string, title: string, isOn: boolean, label: string, hint: string): Html {
  return html`<fieldset>
    <legend>${title}</legend>
    <label>
      <input type="checkbox" role="switch" name="${name}" aria-describedby="${name}-hint" ${attribute('checked', isOn)} />
      ${label}
    </label>
    <small id="${name}-hint">${hint}</small>
  </fieldset>`
}

function readOnlyFacts({ account, environments }: PageRequest, { runs, artifacts, auditLog }: Retention): Fact[] {
  return [
    ...(environments.length > 1 ? [['Environment', account.environment ?? ''] satisfies Fact] : []),
    ['Account ID', html`<code>${account.id}</code>`],
    ['Created', time(account.createdAt, 'exact')],
    ['Finished runs', `kept for ${days(runs)}, artifacts for ${days(artifacts)}`],
    ['Audit log', `kept for ${days(auditLog)}`],
  ]
}

function days(count: number): string {
  return count === 1 ? '1 day' : `${count} days`
}
