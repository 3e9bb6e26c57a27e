/** Settings of the account: its name, and whether its keys may be limited to scopes. */
import { parseName, UserError } from '../../../domain/accounts/user.ts'
import type { Retention } from '../../../maintenance/retention.ts'
import type { Parts } from '../dependencies.ts'
import { facts, inputField, moment, notice } from '../elements.ts'
import { attributes, type Html, html, nothing } from '../html.ts'
import type { Handler, Visit } from '../visit.ts'
import { settingsPage } from './tabs.ts'

export function show({ retention }: Parts): Handler {
  return async (visit) => {
    const { account, user } = visit
    const content = user.role === 'owner' ? form(visit, account, retention) : facts(factsOf(visit, retention))
    return settingsPage(visit, '/settings', content)
  }
}

export function submit({ accounts, retention }: Parts): Handler {
  return async (visit) => {
    const to = { name: visit.form.get('name') ?? '', scopesEnabled: visit.form.get('scopesEnabled') === 'on' }
    try {
      await accounts.update(visit.account.id, { ...to, name: parseName(to.name) }, visit.actor)
      return { location: '/settings?done=saved' }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return settingsPage(visit, '/settings', form(visit, to, retention, error.message), 400)
    }
  }
}

function form(
  visit: Visit,
  shown: { name: string; scopesEnabled: boolean },
  retention: Retention,
  error?: string,
): Html {
  return html`${visit.query.get('done') === 'saved' ? notice('good', 'Saved.') : nothing}
    <form method="post" action="/settings" class="card">
      ${inputField({ name: 'name', label: 'Account name', value: shown.name, error, required: true, maxlength: 100 })}
      <fieldset>
        <legend>Scopes</legend>
        <label>
          <input type="checkbox" role="switch" name="scopesEnabled" aria-describedby="scopes-hint" ${attributes(shown.scopesEnabled, 'checked')} />
          API keys may be limited to scopes
        </label>
        <small id="scopes-hint">Keys that have scopes keep them, also when this is turned off.</small>
      </fieldset>
      <div class="buttons"><button>Save</button></div>
    </form>
    ${facts(fixedFactsOf(visit, retention))}`
}

function factsOf(visit: Visit, retention: Retention): Facts {
  const { name, scopesEnabled } = visit.account
  const scopes = scopesEnabled ? 'API keys may be limited to scopes' : 'off'
  return [['Account', name], ['Scopes', scopes], ...fixedFactsOf(visit, retention)]
}

/** What nobody can change here. */
function fixedFactsOf({ account }: Visit, { runs, artifacts, auditLog }: Retention): Facts {
  return [
    ['Account id', html`<code>${account.id}</code>`],
    ['Created', moment(account.createdAt, 'exact')],
    ['Finished runs', `are kept for ${days(runs)}, their artifacts for ${days(artifacts)}`],
    ['Audit log', `entries are kept for ${days(auditLog)}`],
  ]
}

function days(count: number): string {
  return count === 1 ? 'a day' : `${count} days`
}

type Facts = [term: string, value: Html | string][]
