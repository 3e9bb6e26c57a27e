/** The secrets and settings that workflows declare. No page shows the value of a secret. */

import { parseJson } from '../../../contract/i-json.ts'
import { Problem } from '../../../contract/problem.ts'
import type { ValueKind } from '../../../domain/account-values/account-values.sql.ts'
import { type AccountValue, valuesMax } from '../../../domain/account-values/account-values.ts'
import { findDeclaring } from '../../../domain/account-values/declared-values.ts'
import { secretLength } from '../../../domain/account-values/secret-store.ts'
import type { User } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import {
  backLink,
  emptyState,
  type Html,
  heading,
  html,
  inputField,
  labelledField,
  nothing,
  notice,
  table,
  textArea,
  toSentence,
} from '../html.ts'
import { settingsPage } from '../layout.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { auditLogOf } from './audit-log-page.ts'

const path = '/settings/secrets'
const kinds = ['secret', 'setting'] as const
const titles = { secret: 'Secrets', setting: 'Settings' }

interface Refused {
  kind: ValueKind
  member?: 'name' | 'value'
  message: string
}

export const listValues: PageHandler = (request, deps) => valuesPage(request, deps)

async function valuesPage(request: PageRequest, deps: Dependencies, refused?: Refused): Promise<Page> {
  const { account, query } = request
  const sections = await Promise.all(kinds.map((kind) => renderSection(request, deps, kind, refused)))
  const message = doneMessages.get(query.get('done') ?? '')
  const conflict = refused && refused.member === undefined ? notice('bad', refused.message) : nothing
  const content = html`${message ? notice('good', message) : nothing} ${conflict}
    <p class="muted">
      Workflows of ${account.name} get what they declare when an attempt starts.
      <a href="/docs/secrets-and-settings.html">Secrets and settings</a>
    </p>
    ${sections}`
  return settingsPage(request, path, content, refused ? (refused.member ? 400 : 409) : 200)
}

const doneMessages = new Map([
  ['stored', 'Stored. Runs that waited for it start now, and later attempts get it.'],
  ['deleted', 'Deleted. Later attempts do not get it.'],
])

async function renderSection(
  request: PageRequest,
  { accountValues, declaredValues, workflows }: Dependencies,
  kind: ValueKind,
  refused: Refused | undefined,
): Promise<Html> {
  const { account, user, form, query } = request
  const values = await accountValues.listAll(account.id, kind)
  const declaring = findDeclaring(workflows.current(account.id), kind)
  const lacking = [...declaring.keys()].filter((name) => !values.some((value) => value.name === name)).sort()
  const external = await declaredValues.findExternal(account.id, kind === 'secret' ? lacking : [])
  const missing = lacking.filter((name) => !external.names.has(name))
  const error = refused?.kind === kind ? refused : undefined
  const errorOf = (member: 'name' | 'value') => (error?.member === member ? error.message : undefined)
  const asked = query.get('kind') === kind ? (query.get('name') ?? '') : ''
  const name = error ? (form.get(`${kind}Name`) ?? '') : asked
  const hints = {
    secret: `${secretLength.min} to ${secretLength.max} characters. It is encrypted, and no page shows it again.`,
    setting: 'JSON, such as 10 or ["a", "b"]. Any other text is stored as a string.',
  }
  const storeForm = html`<form method="post" action="${path}" class="card">
    <h3>Store a ${kind}</h3>
    <input type="hidden" name="kind" value="${kind}" />
    ${inputField({ name: `${kind}Name`, label: 'Name', value: name, error: errorOf('name'), required: true, maxlength: 64, hint: 'Capital letters, digits and underscores. An existing name gets a new version.' })}
    ${labelledField({ name: `${kind}Value`, label: 'Value', hint: hints[kind], error: errorOf('value') }, (common) => textArea(html`${common} required`, kind === 'setting' && error ? (form.get('settingValue') ?? '') : '', 2))}
    <div class="buttons"><button>Store ${kind}</button></div>
  </form>`
  return html`<section>
    <h2>${titles[kind]}</h2>
    ${missing.length > 0 ? renderMissing(user, kind, missing, declaring, external.problem) : nothing}
    ${external.names.size > 0 ? renderExternal([...external.names], declaring) : nothing}
    ${values.length > 0 ? renderTable(user, kind, values, declaring) : emptyState(`No ${kind}s`, `This account has no ${kind}s.`)}
    ${may(user, 'POST /settings/secrets') ? storeForm : nothing}
  </section>`
}

function renderExternal(names: readonly string[], declaring: ReadonlyMap<string, string[]>): Html {
  const items = names.map(
    (name) => html`<li><code>${name}</code>, declared by ${links(declaring.get(name) ?? [])}</li>`,
  )
  return html`<p>In the external store, so that runs get them:</p><ul>${items}</ul>`
}

function renderMissing(
  user: User,
  kind: ValueKind,
  names: readonly string[],
  declaring: ReadonlyMap<string, string[]>,
  problem: string,
): Html {
  const items = names.map(
    (name) =>
      html`<li>
        <code>${name}</code>, declared by
        ${links(declaring.get(name) ?? [])}${may(user, 'POST /settings/secrets') ? html`: <a href="${path}?kind=${kind}&amp;name=${name}#field-${kind}Value" aria-label="Store ${name}">store it</a>` : nothing}
      </li>`,
  )
  return notice('warning', html`Missing, so that runs wait: <ul>${items}</ul> ${problem}`)
}

function renderTable(
  user: User,
  kind: ValueKind,
  values: readonly AccountValue[],
  declaring: ReadonlyMap<string, string[]>,
): Html {
  const mayDelete = may(user, 'POST /settings/secrets/delete')
  const rows = values.map(({ name, version, updatedAt, updatedBy, value }) => [
    html`<code>${name}</code>`,
    ...(kind === 'setting' ? [html`<code>${shorten(JSON.stringify(value))}</code>`] : []),
    links(declaring.get(name) ?? []),
    may(user, 'GET /settings/audit-log')
      ? html`<a href="${auditLogOf(`${kind}.stored`, name)}" aria-label="Versions of ${name}: ${version}">${version}</a>`
      : `${version}`,
    html`<div class="stack">${time(updatedAt)}<small>${updatedBy.name}</small></div>`,
    ...(mayDelete ? [renderDeleteButton(kind, name)] : []),
  ])
  const shown = kind === 'setting' ? ['Value'] : []
  return table(
    ['Name', ...shown, 'Workflows', { number: 'Version' }, 'Changed', ...(mayDelete ? [''] : [])],
    rows,
    titles[kind],
  )
}

function renderDeleteButton(kind: ValueKind, name: string): Html {
  return html`<form method="post" action="${path}/delete">
    <input type="hidden" name="kind" value="${kind}" /><input type="hidden" name="name" value="${name}" />
    <button class="quiet" aria-label="Delete ${name}">Delete</button>
  </form>`
}

/** A table has one line for each; the API returns the whole value. */
const shownLengthMax = 60

function shorten(json: string): string {
  return json.length > shownLengthMax ? `${json.slice(0, shownLengthMax)}…` : json
}

/** A name may be declared by many workflows. */
const linksMax = 5

function links(ids: readonly string[]): Html {
  if (ids.length === 0) return html`<span class="muted">none</span>`
  const more = ids.length > linksMax ? html` and ${ids.length - linksMax} more` : nothing
  const first = ids
    .slice(0, linksMax)
    .map((id, index) => html`${index > 0 ? ', ' : ''}<a href="/workflows/${id}">${id}</a>`)
  return html`${first}${more}`
}

export const storeValue: PageHandler = async (request, deps) => {
  const { account, actor, form } = request
  const kind = readKind(form)
  const name = (form.get(`${kind}Name`) ?? '').trim()
  // Browsers submit line breaks as CR LF.
  const text = (form.get(`${kind}Value`) ?? '').replaceAll('\r\n', '\n')
  if (text === '') return valuesPage(request, deps, { kind, member: 'value', message: 'Enter a value.' })
  try {
    const value = kind === 'secret' ? text : parseSetting(text)
    if (await deps.accountValues.put(account.id, kind, name, value, actor)) return { location: `${path}?done=stored` }
    return valuesPage(request, deps, { kind, message: `This account has ${valuesMax} ${kind}s. Delete one first.` })
  } catch (error) {
    const [first] = error instanceof Problem ? (error.problem.errors ?? []) : []
    if (!first || !('pointer' in first)) throw error
    if (first.pointer === '/name')
      return valuesPage(request, deps, {
        kind,
        member: 'name',
        message: 'Use capital letters, digits and underscores.',
      })
    const place = first.pointer.replace(/^\/value/, '')
    return valuesPage(request, deps, {
      kind,
      member: 'value',
      message: `${place ? `${place}: ` : ''}${toSentence(first.detail)}`,
    })
  }
}

/** Text that is not JSON is a string. */
function parseSetting(text: string): unknown {
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  return parseJson(Buffer.from(text))
}

/** Asks first: without `confirmed`, the response is the question. */
export const deleteValue: PageHandler = async ({ account, actor, form }, { accountValues, workflows }) => {
  const kind = readKind(form)
  const name = form.get('name') ?? ''
  const known = (await accountValues.listAll(account.id, kind)).some((value) => value.name === name)
  orNotFound(known)
  if (form.get('confirmed') === 'yes') {
    await accountValues.delete(account.id, kind, name, actor)
    return { location: `${path}?done=deleted` }
  }
  const declaring = findDeclaring(workflows.current(account.id), kind).get(name) ?? []
  const waiting =
    declaring.length > 0 ? html`Runs of ${links(declaring)} will wait for it.` : html`No workflow declares it.`
  const body = html`${backLink(path, 'Secrets')} ${heading(`Delete ${name}?`)}
    <form method="post" action="${path}/delete" class="card">
      <p>Attempts that start later do not get this ${kind}. ${waiting}</p>
      <input type="hidden" name="kind" value="${kind}" /><input type="hidden" name="name" value="${name}" />
      <input type="hidden" name="confirmed" value="yes" />
      <div class="buttons"><button class="danger">Delete ${kind}</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: `Delete ${name}`, tab: 'settings', body }
}

function readKind(form: URLSearchParams): ValueKind {
  return orNotFound(kinds.find((kind) => kind === form.get('kind')))
}
