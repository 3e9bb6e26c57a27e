/** The members of the account: invitations, roles, sign-in links and removal. */

import type { SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { parseName, type Role, roles, type User, UserError } from '../../../domain/accounts/user.ts'
import type { ApiKey } from '../../../domain/api-keys/api-key.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import {
  backLink,
  badge,
  copyable,
  type Html,
  heading,
  html,
  inputField,
  nothing,
  notice,
  selectField,
  table,
} from '../html.ts'
import { settingsPage } from '../layout.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'

const path = '/settings/members'

export const listMembers: PageHandler = (request, deps) => membersPage(request, deps)

async function membersPage(request: PageRequest, { users, links }: Dependencies, error?: UserError): Promise<Page> {
  const { account, user, query } = request
  const [members, invitations] = await Promise.all([users.list(account.id), links.listInvitations(account.id)])
  const isOwner = user.role === 'owner'
  const message = doneMessages.get(query.get('done') ?? '')
  const content = html`${message ? notice('good', message) : nothing} ${error ? notice('bad', error.message) : nothing}
    ${isOwner ? html`<p class="actions"><a class="button" href="${path}/invite">Invite member</a></p>` : nothing}
    ${renderMemberTable(user, members)} ${isOwner && invitations.length > 0 ? renderInvitations(invitations) : nothing}`
  // An error about no field is a conflict with the account's state.
  const status = error ? (error.member ? 400 : 409) : 200
  return settingsPage(request, path, content, status)
}

export const showInvite: PageHandler = async ({ form }) => invitePage(form)

function invitePage(form: URLSearchParams, error?: UserError): Page {
  const errorFor = (member: 'name' | 'role') => (error?.member === member ? error.message : undefined)
  const options = roles.map((role) => ({ value: role, title: roleTitles[role] }))
  const body = html`${backLink(path, 'Members')} ${heading('Invite member')}
    <form method="post" action="${path}/invite" class="card">
      <input type="hidden" name="id" value="${formId(form)}" />
      ${inputField({ name: 'label', label: 'For', value: form.get('label') ?? '', error: errorFor('name'), required: true, maxlength: 100, autofocus: true, hint: 'Name or email, to recognize the invitation. No email is sent: you share the link yourself.' })}
      ${selectField({ name: 'role', label: 'Role', value: form.get('role') ?? 'member', error: errorFor('role'), options, hint: 'Owners also manage settings and members.' })}
      <div class="buttons"><button>Create invitation</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Invite member', tab: 'settings', body, status: error ? 400 : 200 }
}

export const inviteMember: PageHandler = async ({ account, actor, form }, deps) => {
  try {
    const label = parseName(form.get('label') ?? '')
    const token = await deps.links.invite(account.id, { id: formId(form), label, role: parseRole(form) }, actor)
    const lead = `This link lets ${label} join ${account.name}. It works once and expires in 7 days.`
    return linkPage(deps, `Invitation for ${label}`, lead, token)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    if (error.member === 'repeated') return { location: `${path}?done=invited` }
    return invitePage(form, error)
  }
}

export const revokeInvitation: PageHandler = async ({ account, actor, params }, { links }) => {
  orNotFound(await links.withdrawInvitation(account.id, params.id ?? '', actor))
  return { location: `${path}?done=revoked` }
}

export const changeRole: PageHandler = async (request, deps) => {
  const { account, actor, form } = request
  const { id } = await findMember(request, deps)
  try {
    orNotFound(await deps.users.changeRole(account.id, id, parseRole(form), actor))
    return { location: `${path}?done=role` }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return membersPage(request, deps, error)
  }
}

export const createSignInLink: PageHandler = async (request, deps) => {
  const member = await findMember(request, deps)
  const token = await deps.links.createSignInLink(member, request.actor)
  const lead = `This link signs ${member.name} in and lets them set a new password. It works once and expires in 1 day.`
  return linkPage(deps, `Sign-in link for ${member.name}`, lead, token)
}

function linkPage({ addresses }: Dependencies, title: string, lead: string, token: string): Page {
  const url = `${addresses().dashboardUrl}/links/${token}`
  const body = html`${backLink(path, 'Members')} ${heading(title, { lead })}
    ${notice('warning', html`<strong>Copy this link now.</strong> You won’t be able to see it again. Share it over a private channel.`)}
    <section class="card">${copyable('link', url, { once: true, label: 'Copy link' })}</section>
    <p><a class="button secondary" href="${path}">Done</a></p>`
  return { title, tab: 'settings', body }
}

export const confirmRemoval: PageHandler = (request, deps) => removalPage(request, deps)

async function removalPage(request: PageRequest, deps: Dependencies, error?: UserError): Promise<Page> {
  const member = await findMember(request, deps)
  const keys = (await deps.apiKeys.list(request.account.id)).filter(({ userId }) => userId === member.id)
  const { name } = member
  const body = html`${backLink(path, 'Members')} ${heading(`Remove ${name}?`)}
    ${error ? notice('bad', error.message) : nothing}
    <form method="post" class="card">
      <p>
        ${name} is signed out everywhere and can no longer sign in. Unused links that they created stop working.
        This cannot be undone.
      </p>
      ${keys.length === 0 ? html`<p>${name} has no API keys.</p>` : renderDeletedKeys(keys)}
      <div class="buttons"><button class="danger">Remove ${name}</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Remove member', tab: 'settings', body, status: error ? 409 : 200 }
}

export const removeMember: PageHandler = async (request, deps) => {
  const { account, params, actor } = request
  try {
    orNotFound(await deps.users.remove(account.id, params.id ?? '', actor))
    return { location: `${path}?done=removed` }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return removalPage(request, deps, error)
  }
}

async function findMember({ account, params }: PageRequest, { users }: Dependencies): Promise<User> {
  const user = await users.get(params.id ?? '')
  return orNotFound(user?.accountId === account.id && user)
}

/** @throws {UserError} */
function parseRole(form: URLSearchParams): Role {
  const role = roles.find((each) => each === form.get('role'))
  if (role === undefined) throw new UserError('Choose a role.', 'role')
  return role
}

// Templates of the pages of members.

const doneMessages = new Map([
  ['role', 'Role changed.'],
  ['removed', 'Member removed. Their sessions and API keys no longer work.'],
  ['invited', 'This invitation was already created. If you lost its link, revoke it and create another one.'],
  ['revoked', 'Invitation revoked.'],
])

const roleTitles: Record<Role, string> = { owner: 'Owner', member: 'Member' }

function renderMemberTable(user: User, members: User[]): Html {
  const isOwner = user.role === 'owner'
  const hasOneOwner = members.filter(({ role }) => role === 'owner').length === 1
  const columns = [
    'Name',
    'Email',
    'Role',
    ...(isOwner ? ['Two-factor'] : []),
    'Last sign-in',
    ...(isOwner ? [''] : []),
  ]
  const rows = members.map((member) => {
    const isSelf = member.id === user.id
    return [
      html`<strong>${member.name}</strong>${isSelf ? html` <span class="muted">(you)</span>` : nothing}`,
      member.email ?? html`<span class="muted">not set</span>`,
      badge(member.role === 'owner' ? 'busy' : 'quiet', roleTitles[member.role]),
      ...(isOwner ? [member.hasSecondFactor ? badge('good', 'On') : badge('quiet', 'Off')] : []),
      time(member.lastSignedInAt),
      ...(isOwner ? [renderMemberActions(member, isSelf, member.role === 'owner' && hasOneOwner)] : []),
    ]
  })
  return table(columns, rows, 'Members')
}

function renderMemberActions({ id, name, role }: User, isSelf: boolean, isOnlyOwner: boolean): Html {
  const other: Role = role === 'owner' ? 'member' : 'owner'
  const forOthers = html`<form method="post" action="${path}/${id}/sign-in-link">
      <button class="link" aria-label="Create sign-in link for ${name}">Create sign-in link</button>
    </form>
    <a class="danger" href="${path}/${id}/remove" aria-label="Remove ${name}">Remove</a>`
  const roleForm = html`<form method="post" action="${path}/${id}/role">
      <button class="link" name="role" value="${other}" aria-label="Make ${other}: ${name}">Make ${other}</button>
    </form>`
  return html`<span class="row-actions">
    ${isOnlyOwner ? nothing : roleForm} ${isSelf ? nothing : forOthers}
  </span>`
}

function renderInvitations(invitations: SignInLink[]): Html {
  const rows = invitations.map(({ id, label, role, createdAt, expiresAt }) => [
    html`<strong>${label}</strong>`,
    role ? roleTitles[role] : '',
    time(createdAt),
    time(expiresAt),
    html`<form method="post" action="${path}/invitations/${id}/withdraw">
      <button class="link danger" aria-label="Revoke the invitation for ${label}">Revoke</button>
    </form>`,
  ])
  return html`<h2>Pending invitations</h2>
    ${table(['For', 'Role', 'Created', 'Expires', ''], rows, 'Pending invitations')}`
}

function renderDeletedKeys(keys: ApiKey[]): Html {
  const rows = keys.map(({ name, prefix, lastUsedAt }) => [
    html`<strong>${name}</strong>`,
    html`<code>${prefix}…</code>`,
    time(lastUsedAt),
  ])
  const subject = keys.length === 1 ? 'This API key is' : `These ${keys.length} API keys are`
  return html`${notice('warning', html`<strong>${subject} deleted too.</strong> Programs that use ${keys.length === 1 ? 'it' : 'them'} lose access immediately.`)}
    ${table(['Name', 'Key', 'Last used'], rows, 'API keys that are deleted')}`
}
