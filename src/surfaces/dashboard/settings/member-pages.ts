/** The members of the account: invitations, roles, sign-in links and removal. */

import { everyGroup } from '../../../config/sign-in-settings.ts'
import { type Role, roleDescriptions, roles, roleTitles, toRole } from '../../../domain/accounts/roles.ts'
import type { SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { parseName, type User, UserError } from '../../../domain/accounts/user.ts'
import type { ApiKey } from '../../../domain/api-keys/api-key.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import {
  attribute,
  backLink,
  badge,
  copyable,
  type Fact,
  facts,
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
import { formId, orNotFound, type Page, PageForbidden, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'

const path = '/settings/members'

export const listMembers: PageHandler = (request, deps) => membersPage(request, deps)

async function membersPage(request: PageRequest, deps: Dependencies, error?: UserError): Promise<Page> {
  const { users, links, providerMembers, identityProvider: provider, passwords } = deps
  const { account, user, query } = request
  const [members, invitations, removed] = await Promise.all([
    users.list(account.ownerId),
    links.listInvitations(account.ownerId),
    provider ? providerMembers.listRemoved(account.ownerId, provider.issuer) : [],
  ])
  const isAdmin = may(user, 'POST /settings/members/:id/role')
  const message = doneMessages.get(query.get('done') ?? '')
  const content = html`${message ? notice('good', message) : nothing} ${error ? notice('bad', error.message) : nothing}
    ${isAdmin && passwords ? html`<p class="actions"><a class="button" href="${path}/invite">Invite member</a></p>` : nothing}
    ${provider?.accountId === account.ownerId ? html`<p class="muted">People join by signing in with ${provider.name}, which also gives them their roles.</p>` : nothing}
    ${renderMemberTable(user, members, provider)} ${isAdmin && invitations.length > 0 ? renderInvitations(invitations) : nothing}
    ${isAdmin && removed.length > 0 ? renderRemoved(removed) : nothing}
    ${renderRoles()}`
  // An error about no field is a conflict with the account's state.
  const status = error ? (error.member ? 400 : 409) : 200
  return settingsPage(request, path, content, status)
}

export const showInvite: PageHandler = async ({ form }, deps) => {
  requirePasswords(deps)
  return invitePage(form)
}

/** An invitation creates a user with a password. @throws {PageForbidden} */
function requirePasswords({ passwords, identityProvider }: Dependencies): void {
  if (passwords) return
  throw new PageForbidden(`Invitations are switched off. People join by signing in with ${identityProvider?.name}.`)
}

function invitePage(form: URLSearchParams, error?: UserError): Page {
  const errorFor = (member: 'name' | 'role') => (error?.member === member ? error.message : undefined)
  const options = roles.map((role) => ({ value: role, title: roleTitles[role] }))
  const body = html`${backLink(path, 'Members')} ${heading('Invite member')}
    <form method="post" action="${path}/invite" class="card">
      <input type="hidden" name="id" value="${formId(form)}" />
      ${inputField({ name: 'label', label: 'For', value: form.get('label') ?? '', error: errorFor('name'), required: true, maxlength: 100, autofocus: true, hint: 'Name or email, to recognize the invitation. No email is sent: you share the link yourself.' })}
      ${selectField({ name: 'role', label: 'Role', value: form.get('role') ?? 'viewer', error: errorFor('role'), options, hint: 'It can be changed later.' })}
      ${renderRoles()}
      <div class="buttons"><button>Create invitation</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Invite member', tab: 'settings', body, status: error ? 400 : 200 }
}

export const inviteMember: PageHandler = async ({ account, actor, form }, deps) => {
  requirePasswords(deps)
  try {
    const label = parseName(form.get('label') ?? '')
    const token = await deps.links.invite(account.ownerId, { id: formId(form), label, role: parseRole(form) }, actor)
    const lead = `This link lets ${label} join ${account.name}. It works once and expires in 7 days.`
    return linkPage(deps, `Invitation for ${label}`, lead, token)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    if (error.member === 'repeated') return { location: `${path}?done=invited` }
    return invitePage(form, error)
  }
}

export const revokeInvitation: PageHandler = async ({ account, actor, params }, { links }) => {
  orNotFound(await links.withdrawInvitation(account.ownerId, params.id ?? '', actor))
  return { location: `${path}?done=revoked` }
}

export const changeRole: PageHandler = async (request, deps) => {
  const { account, actor, form } = request
  const member = await findMember(request, deps)
  const { id } = member
  try {
    if (hasProviderRole(member, deps.identityProvider))
      throw new UserError(`The role of this user comes from ${deps.identityProvider?.name}: change their groups there.`)
    orNotFound(await deps.users.changeRole(account.ownerId, id, parseRole(form), actor))
    return { location: `${path}?done=role` }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return membersPage(request, deps, error)
  }
}

export const createSignInLink: PageHandler = async (request, deps) => {
  const member = await findMember(request, deps)
  const may = member.identityIssuer === null && deps.passwords ? ' and lets them set a new password' : ''
  const lead = `This link signs ${member.name} in${may}. It works once and expires in 1 day.`
  try {
    // Two admins whose groups were taken away could otherwise stay signed in by links for each other.
    if (hasProviderRole(member, deps.identityProvider))
      throw new UserError(`This user signs in by ${deps.identityProvider?.name}, which decides whether they still may.`)
    const token = await deps.links.createSignInLink(member, request.actor)
    return linkPage(deps, `Sign-in link for ${member.name}`, lead, token)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return membersPage(request, deps, error)
  }
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
  const listed = await Promise.all(request.environments.map(({ id }) => deps.apiKeys.list(id)))
  const keys = listed.flat().filter(({ userId }) => userId === member.id)
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
    orNotFound(await deps.users.remove(account.ownerId, params.id ?? '', actor))
    return { location: `${path}?done=removed` }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return removalPage(request, deps, error)
  }
}

async function findMember({ account, params }: PageRequest, { users }: Dependencies): Promise<User> {
  const user = await users.get(params.id ?? '')
  return orNotFound(user?.accountId === account.ownerId && user)
}

/** @throws {UserError} */
function parseRole(form: URLSearchParams): Role {
  const role = toRole(form.get('role'))
  if (role === undefined) throw new UserError('Choose a role.', 'role')
  return role
}

export const allowAgain: PageHandler = async ({ account, actor, params }, { providerMembers }) => {
  orNotFound(await providerMembers.allowAgain(account.ownerId, params.id ?? '', actor))
  return { location: `${path}?done=allowed` }
}

/** Whether the provider decides the role at each sign-in. */
function hasProviderRole({ identityIssuer }: User, provider: Dependencies['identityProvider']): boolean {
  return identityIssuer !== null && identityIssuer === provider?.issuer
}

// Templates of the pages of members.

export function describeGroup(group: string): string {
  return group === everyGroup ? 'as everyone there' : `from the group ${group}`
}

function renderRemoved(removed: User[]): Html {
  const rows = removed.map(({ id, name, email }) => [
    html`<strong>${name}</strong>`,
    email ?? html`<span class="muted">not set</span>`,
    html`<form method="post" action="${path}/${id}/allow">
      <button class="link" aria-label="Allow ${name} to join again">Allow to join again</button>
    </form>`,
  ])
  return html`<h2>Removed members</h2>
    <p class="muted">They are refused when they sign in, also while their groups have a role.</p>
    ${table(['Name', 'Email', ''], rows, 'Removed members')}`
}

const doneMessages = new Map([
  ['role', 'Role changed.'],
  ['removed', 'Member removed. Their sessions and API keys no longer work.'],
  ['invited', 'This invitation was already created. If you lost its link, revoke it and create another one.'],
  ['revoked', 'Invitation revoked.'],
  ['allowed', 'They can join again the next time they sign in.'],
])

/** What each role may do. */
function renderRoles(): Html {
  const rows = roles.map((role): Fact => [roleTitles[role], roleDescriptions[role]])
  return html`<details><summary>What the roles may do</summary>${facts(rows)}</details>`
}

function renderMemberTable(user: User, members: User[], provider: Dependencies['identityProvider']): Html {
  const isAdmin = may(user, 'POST /settings/members/:id/role')
  const hasOneAdmin = members.filter(({ role, canSignIn }) => role === 'admin' && canSignIn).length === 1
  const columns = [
    'Name',
    'Email',
    'Role',
    ...(isAdmin ? ['Two-factor'] : []),
    'Last sign-in',
    ...(isAdmin ? [''] : []),
  ]
  const rows = members.map((member) => {
    const isSelf = member.id === user.id
    return [
      html`<strong>${member.name}</strong>${isSelf ? html` <span class="muted">(you)</span>` : nothing}`,
      member.email ?? html`<span class="muted">not set</span>`,
      renderRole(member, isAdmin && !(member.role === 'admin' && member.canSignIn && hasOneAdmin), provider),
      ...(isAdmin ? [member.hasSecondFactor ? badge('good', 'On') : badge('quiet', 'Off')] : []),
      time(member.lastSignedInAt),
      ...(isAdmin ? [isSelf ? nothing : renderMemberActions(member, provider)] : []),
    ]
  })
  return table(columns, rows, 'Members')
}

function roleBadge(role: Role | null): Html {
  if (role === null) return badge('quiet', 'No role')
  return badge(role === 'admin' ? 'busy' : 'quiet', roleTitles[role])
}

/** With where it comes from, if not from an admin. */
function renderRole(member: User, isChangeable: boolean, provider: Dependencies['identityProvider']): Html {
  if (!hasProviderRole(member, provider)) return isChangeable ? renderRoleForm(member) : roleBadge(member.role)
  const group = member.roleFrom === null ? '' : `, ${describeGroup(member.roleFrom)}`
  return html`<div class="stack">${roleBadge(member.role)} <small>${provider?.name}${group}</small></div>`
}

function renderRoleForm({ id, name, role }: User): Html {
  const options = roles.map(
    (each) => html`<option value="${each}" ${attribute('selected', each === role)}>${roleTitles[each]}</option>`,
  )
  return html`<form method="post" action="${path}/${id}/role" class="role">
    <select name="role" aria-label="Role of ${name}">${options}</select>
    <button class="link" aria-label="Change the role of ${name}">Change</button>
  </form>`
}

function renderMemberActions(member: User, provider: Dependencies['identityProvider']): Html {
  const { id, name, role } = member
  const signInLink = html`<form method="post" action="${path}/${id}/sign-in-link">
    <button class="link" aria-label="Create sign-in link for ${name}">Create sign-in link</button>
  </form>`
  return html`<span class="row-actions">
    ${role === null || hasProviderRole(member, provider) ? nothing : signInLink}
    <a class="danger" href="${path}/${id}/remove" aria-label="Remove ${name}">Remove</a>
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
