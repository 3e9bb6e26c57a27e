/** The environments of the account: adding and removing them, and the one that the session's pages show. */
import type { Account } from '../../../domain/accounts/accounts.ts'
import {
  EnvironmentError,
  environmentNameHint,
  firstEnvironmentDefault,
} from '../../../domain/accounts/environments.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { backLink, badge, copyable, type Html, heading, html, inputField, nothing, notice, table } from '../html.ts'
import { settingsPage } from '../layout.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { nextPath } from '../sign-in/code-page.ts'

const path = '/settings/environments'

export const listEnvironments: PageHandler = async (request, deps) => environmentsPage(request, deps)

function environmentsPage(request: PageRequest, { environments }: Dependencies, error?: EnvironmentError): Page {
  const hasSeveral = request.environments.length > 1
  const content = html`${request.query.get('done') === 'added' ? notice('good', 'Environment added. Switch to it, and create its API keys.') : nothing}
    ${error && error.member === undefined ? notice('bad', error.message) : nothing}
    <p class="muted">
      Each environment has its own runs, workflows, schedules, secrets, settings, browser contexts, webhooks, notifications, API
      keys, limits and audit log. Members and their roles are those of all environments.
    </p>
    ${hasSeveral ? renderEnvironments(request) : nothing}
    ${environments.max > request.environments.length ? renderAddForm(request, error) : notice('quiet', `This account can have ${environments.max} environments.`)}`
  return settingsPage(request, path, content, error ? (error.member ? 400 : 409) : 200)
}

function renderEnvironments({ environments, account }: PageRequest): Html {
  const rows = environments.map((each, index) => [
    html`<strong>${each.environment}</strong>${each.id === account.id ? html` ${badge('good', 'Shown')}` : nothing}`,
    html`<code>${each.id}</code>`,
    time(each.createdAt),
    index === 0
      ? html`<span class="row-actions muted">the first one</span>`
      : html`<span class="row-actions"><a class="danger" href="${path}/${each.id}/remove" aria-label="Remove ${each.environment}">Remove</a></span>`,
  ])
  return table(['Environment', 'Account ID', 'Created', ''], rows, 'Environments')
}

function renderAddForm({ form, environments }: PageRequest, error: EnvironmentError | undefined): Html {
  const errorFor = (member: 'name' | 'first') => (error?.member === member ? error.message : undefined)
  const isFirst = environments.length === 1
  const first = form.get('first') ?? firstEnvironmentDefault
  return html`<form method="post" action="${path}" class="card">
    <h2>Add an environment</h2>
    ${inputField({ name: 'name', label: 'Name', value: form.get('name') ?? '', error: errorFor('name'), required: true, maxlength: 32, hint: environmentNameHint })}
    ${isFirst ? inputField({ name: 'first', label: 'Name of the first environment', value: first, error: errorFor('first'), required: true, maxlength: 32, hint: 'It has everything that the account has now. Names cannot be changed later.' }) : nothing}
    <div class="buttons"><button>Add environment</button></div>
  </form>`
}

export const addEnvironment: PageHandler = async (request, deps) => {
  const { account, actor, form } = request
  const given = { name: (form.get('name') ?? '').trim(), first: form.get('first')?.trim() }
  try {
    await deps.environments.add(account.ownerId, given, actor)
    return { location: `${path}?done=added` }
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error
    return environmentsPage(request, deps, error)
  }
}

export const confirmEnvironmentRemoval: PageHandler = async (request) => removalPage(request, findOther(request))

function removalPage({ form }: PageRequest, { environment }: Account, error?: string): Page {
  const hint = `Enter ${environment} to confirm.`
  const body = html`${backLink(path, 'Environments')} ${heading(`Remove ${environment}?`)}
    <form method="post" class="card">
      <p>
        This deletes all runs, workflows, schedules, secrets, settings, browser contexts, webhooks, notification rules, API keys
        and the audit log of this environment. It takes as long as its running attempts. It cannot be undone.
      </p>
      ${inputField({ name: 'confirm', label: 'Name of the environment', value: form.get('confirm') ?? '', error, required: true, hint, autofocus: true })}
      <div class="buttons"><button class="danger">Remove ${environment}</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Remove environment', tab: 'settings', body, status: error === undefined ? 200 : 400 }
}

/** Responds when everything is deleted. An interrupted removal leaves the environment in the list. */
export const removeEnvironment: PageHandler = async (request, { environments }) => {
  const { account, actor, form } = request
  const found = findOther(request)
  const name = found.environment ?? ''
  if (form.get('confirm')?.trim() !== name)
    return removalPage(request, found, 'This is not the name of the environment.')
  const receipt = orNotFound(await environments.remove(account.ownerId, name, actor))
  const lead = 'The receipt says how many rows were deleted from each table. It is shown once.'
  const body = html`${heading(`Removed ${name}`, { lead })}
    <section class="card">${copyable('receipt', JSON.stringify(receipt, null, 2), { label: 'Copy receipt' })}</section>
    <p class="muted">Backups from before still have the environment, until you delete them.</p>
    <p><a class="button secondary" href="/settings">Done</a></p>`
  return { title: 'Environment removed', tab: 'settings', body }
}

/** Any environment of the path but the first. @throws {PageNotFound} */
function findOther({ environments, params }: PageRequest): Account {
  return orNotFound(environments.slice(1).find(({ id }) => id === params.id))
}

// The environment that the session's pages show.

export const enterEnvironment: PageHandler = async ({ environments, account, session, form }, { sessions }) => {
  const { id } = orNotFound(
    environments.length > 1 && environments.find((each) => each.id === form.get('environmentId')),
  )
  await sessions.enterEnvironment(session, id === account.ownerId ? null : id)
  return { location: nextPath(form) }
}
