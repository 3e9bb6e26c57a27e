/** Templates of the pages of members. */
import type { SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { type Role, roles, type User, type UserError } from '../../../domain/accounts/user.ts'
import type { ApiKey } from '../../../domain/api-keys/api-key.ts'
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

const path = '/settings/members'

const doneMessages = new Map([
  ['role', 'Role changed.'],
  ['removed', 'Member removed. Their sessions and API keys no longer work.'],
  ['invited', 'This invitation was already created. If you lost its link, revoke it and create another one.'],
  ['revoked', 'Invitation revoked.'],
])

const roleTitles: Record<Role, string> = { owner: 'Owner', member: 'Member' }

interface MemberList {
  user: User
  members: User[]
  invitations: SignInLink[]
  done: string
  error: string | undefined
}

export function renderMembers({ user, members, invitations, done, error }: MemberList): Html {
  const isOwner = user.role === 'owner'
  const message = doneMessages.get(done)
  return html`${message ? notice('good', message) : nothing} ${error ? notice('bad', error) : nothing}
    ${isOwner ? html`<p class="actions"><a class="button" href="${path}/invite">Invite member</a></p>` : nothing}
    ${renderMemberTable(user, members)} ${isOwner && invitations.length > 0 ? renderInvitations(invitations) : nothing}`
}

function renderMemberTable(user: User, members: User[]): Html {
  const isOwner = user.role === 'owner'
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
      ...(isOwner ? [renderMemberActions(member, isSelf)] : []),
    ]
  })
  return table(columns, rows, 'Members')
}

function renderMemberActions({ id, name, role }: User, isSelf: boolean): Html {
  const other: Role = role === 'owner' ? 'member' : 'owner'
  const forOthers = html`<form method="post" action="${path}/${id}/sign-in-link">
      <button class="link" aria-label="Create sign-in link for ${name}">Create sign-in link</button>
    </form>
    <a class="danger" href="${path}/${id}/remove" aria-label="Remove ${name}">Remove</a>`
  return html`<span class="row-actions">
    <form method="post" action="${path}/${id}/role">
      <button class="link" name="role" value="${other}" aria-label="Make ${other}: ${name}">Make ${other}</button>
    </form>
    ${isSelf ? nothing : forOthers}
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

export function renderInvite(form: URLSearchParams, id: string, error: UserError | undefined): Html {
  const errorFor = (member: 'name' | 'role') => (error?.member === member ? error.message : undefined)
  const options = roles.map((role) => ({ value: role, title: roleTitles[role] }))
  return html`${backLink(path, 'Members')} ${heading('Invite member')}
    <form method="post" action="${path}/invite" class="card">
      <input type="hidden" name="id" value="${id}" />
      ${inputField({ name: 'label', label: 'For', value: form.get('label') ?? '', error: errorFor('name'), required: true, maxlength: 100, autofocus: true, hint: 'Name or email, to recognize the invitation. No email is sent: you share the link yourself.' })}
      ${selectField({ name: 'role', label: 'Role', value: form.get('role') ?? 'member', error: errorFor('role'), options, hint: 'Owners also manage settings and members.' })}
      <div class="buttons"><button>Create invitation</button><a href="${path}">Cancel</a></div>
    </form>`
}

export function renderLink(title: string, lead: string, url: string): Html {
  return html`${backLink(path, 'Members')} ${heading(title, { lead })}
    ${notice('warning', html`<strong>Copy this link now.</strong> You won’t be able to see it again. Share it over a private channel.`)}
    <section class="card">${copyable('link', url, { once: true, label: 'Copy link' })}</section>
    <p><a class="button secondary" href="${path}">Done</a></p>`
}

export function renderRemoval(member: User, keys: ApiKey[], error: string | undefined): Html {
  return html`${backLink(path, 'Members')} ${heading(`Remove ${member.name}?`)}
    ${error ? notice('bad', error) : nothing}
    <form method="post" class="card">
      <p>
        ${member.name} is signed out everywhere and can no longer sign in. Unused links that they created stop working.
        This cannot be undone.
      </p>
      ${keys.length === 0 ? html`<p>${member.name} has no API keys.</p>` : renderDeletedKeys(keys)}
      <div class="buttons"><button class="danger">Remove ${member.name}</button><a href="${path}">Cancel</a></div>
    </form>`
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
