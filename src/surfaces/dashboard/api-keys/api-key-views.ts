/** What the pages of API keys look like. */
import {
  type ApiKey,
  type ApiKeyError,
  activeKeysPerAccountMax,
  keysPerUserMax,
} from '../../../domain/api-keys/api-key.ts'
import type { RevealedKey } from '../../../domain/api-keys/api-keys.ts'
import {
  badge,
  copyable,
  emptyState,
  facts,
  heading,
  inputField,
  moment,
  notice,
  selectField,
  table,
  trail,
} from '../elements.ts'
import { attributes, type Html, html, nothing } from '../html.ts'
import type { Visit } from '../visit.ts'
import { lifetimes } from './lifetimes.ts'

const endings = new Map([
  ['renamed', 'Renamed.'],
  ['deleted', 'Deleted. Every system that used the key is refused from now on.'],
  ['repeated', 'That was done already. A value is shown once; if you have not stored it, rotate the key.'],
])

interface KeyList {
  visit: Visit
  keys: ApiKey[]
  names: Map<string, string>
  limit: ApiKeyError | undefined
  done: string
}

export function listView({ visit, keys, names, limit, done }: KeyList): Html {
  const { user, account } = visit
  const active = keys.filter(({ expired }) => !expired).length
  const held = keys.filter(({ userId }) => userId === user.id).length
  const lead = html`They let your programs call the APIs of <strong>${account.name}</strong>.
    You hold ${held} of ${keysPerUserMax}; ${active} of ${activeKeysPerAccountMax} in the account are active.`
  const ending = endings.get(done)
  const action = limit ? nothing : html`<a class="button" href="/api-keys/new">Create API key</a>`
  return html`${heading('API Keys', { lead, actions: html`${action}` })}
    ${ending ? notice('good', ending) : nothing} ${limit ? limitNotice(limit) : nothing}
    ${keys.length === 0 ? noKeys() : keyTable(visit, keys, names)}`
}

function noKeys(): Html {
  return emptyState(
    'No API key yet',
    html`<p>A program needs one to queue runs. Its value is shown once, when you create it.</p>
      <p><a class="button" href="/api-keys/new">Create your first API key</a></p>`,
  )
}

function keyTable({ user }: Visit, keys: ApiKey[], names: Map<string, string>): Html {
  const columns = ['Name', 'Key', 'Scopes', 'Creator', 'Created', 'Last used', 'Expires', 'State', '']
  const rows = keys.map((key) => {
    const mine = key.userId === user.id
    const own = mine
      ? html`<a href="/api-keys/${key.id}/rename" aria-label="Rename ${key.name}">Rename</a>
          <a href="/api-keys/${key.id}/rotate" aria-label="Rotate ${key.name}">Rotate</a>`
      : nothing
    const end =
      mine || user.role === 'owner'
        ? html`<a class="danger" href="/api-keys/${key.id}/delete" aria-label="Delete ${key.name}">Delete</a>`
        : nothing
    return [
      html`<strong>${key.name}</strong>`,
      html`<code>${key.prefix}…</code>`,
      scopesOf(key),
      mine ? 'You' : (names.get(key.userId) ?? ''),
      moment(key.createdAt),
      moment(key.lastUsedAt),
      moment(key.expiresAt),
      key.expired ? badge('quiet', 'expired') : badge('good', 'active'),
      html`<span class="row-actions">${own}${end}</span>`,
    ]
  })
  return table(columns, rows, 'API keys')
}

function scopesOf({ scopes }: ApiKey): Html {
  if (scopes === null) return html`<span class="muted">all</span>`
  return html`${scopes.map((scope) => html`<code>${scope}</code> `)}`
}

function limitNotice(limit: ApiKeyError): Html {
  const advice =
    limit.about === 'userLimit'
      ? html`<strong>Your limit is reached.</strong> You hold ${keysPerUserMax} API keys, expired ones included. Delete one
          that you no longer need, or rotate one to get a new value in its place.`
      : html`<strong>The account's limit is reached.</strong> It has ${activeKeysPerAccountMax} active API keys. Delete one, or
          ask whoever created it to; an owner may delete every key.`
  return notice('warning', advice)
}

interface NewKey {
  visit: Visit
  id: string
  limit: ApiKeyError | undefined
  refused: ApiKeyError | undefined
  knownScopes: readonly string[]
}

export function newView({ visit, id, limit, refused, knownScopes }: NewKey): Html {
  const { form, account } = visit
  const options = Object.entries(lifetimes).map(([value, title]) => ({ value, title }))
  const error = (about: ApiKeyError['about']) => (refused?.about === about ? refused.message : undefined)
  // They may have been turned off since the form was shown.
  const scopesOff = account.scopesEnabled ? undefined : error('scopes')
  return html`${trail('/api-keys', 'API Keys')} ${heading('Create an API key')}
    ${limit ? limitNotice(limit) : nothing} ${scopesOff ? notice('bad', scopesOff) : nothing}
    <form method="post" action="/api-keys/new" class="card">
      <input type="hidden" name="id" value="${id}" />
      ${inputField({ name: 'name', label: 'Name', value: form.get('name') ?? '', error: error('name'), required: true, maxlength: 100, autofocus: true, hint: 'What it is for, such as “nightly import”. Only people see it.' })}
      ${selectField({ name: 'lifetime', label: 'Expires', value: form.get('lifetime') ?? '', error: error('lifetime'), options })}
      ${account.scopesEnabled ? scopeFields(form, knownScopes, error('scopes')) : nothing}
      <div class="buttons"><button>Create API key</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

function scopeFields(form: URLSearchParams, knownScopes: readonly string[], error: string | undefined): Html {
  const some = form.get('permissions') === 'some'
  const chosen = form.getAll('scope')
  const boxes = knownScopes.map(
    (scope) =>
      html`<label><input type="checkbox" name="scope" value="${scope}" ${attributes(chosen.includes(scope), 'checked')} /><code>${scope}</code></label>`,
  )
  return html`<fieldset ${error ? html`aria-describedby="scopes-error"` : nothing}>
    <legend>Permissions</legend>
    <label><input type="radio" name="permissions" value="all" ${attributes(!some, 'checked')} />Everything that the account may do</label>
    <label><input type="radio" name="permissions" value="some" ${attributes(some, 'checked')} />Only these scopes:</label>
    <div class="choices">${boxes}</div>
    ${error ? html`<small id="scopes-error" class="error">${error}</small>` : nothing}
  </fieldset>`
}

/** The one page that has the value. @param command what uses it, when there is something to use. */
export function revealedView(key: RevealedKey, command: string | undefined): Html {
  const use = html`<h2>Use it</h2>
    <p>This queues a run, with an example of the variables. Each workflow's page has such a command.</p>
    ${copyable('key-command', command ?? '', { once: true, label: 'Copy command' })}`
  return html`${trail('/api-keys', 'API Keys')} ${heading(`“${key.name}” is ready`)}
    ${notice('warning', html`<strong>Store the value now.</strong> It is shown this once, and stored nowhere.`)}
    <section class="card">
      <h2>Value</h2>
      ${copyable('key-value', key.value, { once: true, label: 'Copy value' })} ${command ? use : nothing}
    </section>
    <p><a class="button secondary" href="/api-keys">I have stored it</a></p>`
}

export function renameView(key: ApiKey, error?: string): Html {
  return html`${trail('/api-keys', 'API Keys')} ${heading('Rename API key')}
    <form method="post" class="card">
      ${inputField({ name: 'name', label: 'Name', value: key.name, error, required: true, maxlength: 100, autofocus: true })}
      <div class="buttons"><button>Rename</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

export function rotateView(key: ApiKey, newId: string, error?: string): Html {
  return html`${trail('/api-keys', 'API Keys')} ${heading(`Rotate “${key.name}”?`)}
    ${error ? notice('bad', error) : nothing}
    <form method="post" class="card">
      <input type="hidden" name="id" value="${newId}" />
      <p>
        You get a new value with the same name, scopes and lifetime. <strong>The old value, <code>${key.prefix}…</code>, is
        refused at the same moment</strong>, so have the places at hand where it is used.
      </p>
      ${facts([['Last used', usage(key)]])}
      <div class="buttons"><button>Rotate now</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

export function deleteView(key: ApiKey, holder: string): Html {
  return html`${trail('/api-keys', 'API Keys')} ${heading(`Delete “${key.name}”?`)}
    <form method="post" class="card">
      <p>Every system that uses it is refused from the moment you confirm. This cannot be undone.</p>
      ${facts([
        ['Key', html`<code>${key.prefix}…</code>`],
        ['Creator', holder],
        ['Last used', usage(key)],
      ])}
      <div class="buttons"><button class="danger">Delete API key</button><a href="/api-keys">Cancel</a></div>
    </form>`
}

/** When the key was used last, and by whom. */
function usage({ lastUsedAt, lastUsedBy }: ApiKey): Html {
  if (lastUsedAt === null) return html`never`
  return html`${moment(lastUsedAt)}${lastUsedBy === null ? nothing : html`, by <code>${lastUsedBy}</code>`}`
}
