/** The users of the account: who they are, inviting, their roles, and removing them. */
import type { SignInLink } from '../../../domain/accounts/sign-in-links.ts'
import { parseName, type Role, roles, type User, UserError } from '../../../domain/accounts/user.ts'
import type { ApiKey } from '../../../domain/api-keys/api-key.ts'
import type { Parts } from '../dependencies.ts'
import { badge, copyable, heading, inputField, moment, notice, selectField, table, trail } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { formId, found, type Handler, type Page, type Visit } from '../visit.ts'
import { settingsPage } from './tabs.ts'

const path = '/settings/members'

const endings = new Map([
  ['role', 'The role is changed.'],
  ['removed', 'Removed. Their sessions and API keys are refused from now on.'],
  ['invited', 'That invitation was made already. If its link is lost, withdraw it and make another one.'],
  ['withdrawn', 'The invitation is withdrawn.'],
])

const roleOptions = roles.map((role) => ({ value: role, title: role === 'owner' ? 'Owner' : 'Member' }))

export function list(parts: Parts): Handler {
  return async (visit) => membersPage(parts, visit)
}

async function membersPage({ users, links }: Parts, visit: Visit, refused?: UserError): Promise<Page> {
  const { account, user, query } = visit
  const [members, invitations] = await Promise.all([users.list(account.id), links.listInvitations(account.id)])
  const isOwner = user.role === 'owner'
  const done = endings.get(query.get('done') ?? '')
  const content = html`${done ? notice('good', done) : nothing} ${refused ? notice('bad', refused.message) : nothing}
    ${isOwner ? html`<p class="actions"><a class="button" href="${path}/invite">Invite a user</a></p>` : nothing}
    ${memberTable(visit, members)} ${isOwner ? invitationPart(invitations) : nothing}`
  return settingsPage(visit, path, content, statusOf(refused))
}

/** What was typed wrong is the reader's to mend; anything else is how the account is. */
function statusOf(refused: UserError | undefined): number {
  return refused ? (refused.member ? 400 : 409) : 200
}

function memberTable({ user }: Visit, members: User[]): Html {
  const isOwner = user.role === 'owner'
  const columns = ['Name', 'E-mail', 'Role', 'Last signed in', ...(isOwner ? [''] : [])]
  const rows = members.map((member) => {
    const me = member.id === user.id
    const name = html`<strong>${member.name}</strong>${me ? html` <span class="muted">you</span>` : nothing}`
    const role = badge(member.role === 'owner' ? 'busy' : 'quiet', member.role)
    const shown = [
      name,
      member.email ?? html`<span class="muted">not chosen yet</span>`,
      role,
      moment(member.lastSignedInAt),
    ]
    return isOwner ? [...shown, memberActions(member, me)] : shown
  })
  return table(columns, rows, 'Members')
}

function memberActions({ id, name, role }: User, me: boolean): Html {
  const other: Role = role === 'owner' ? 'member' : 'owner'
  return html`<span class="row-actions">
    <form method="post" action="${path}/${id}/role">
      <button class="link" name="role" value="${other}" aria-label="Make ${other}: ${name}">
        Make ${other}
      </button>
    </form>
    ${
      me
        ? nothing
        : html`<form method="post" action="${path}/${id}/sign-in-link">
            <button class="link" aria-label="Sign-in link for ${name}">Sign-in link</button>
          </form>
          <a class="danger" href="${path}/${id}/remove" aria-label="Remove ${name}">Remove</a>`
    }
  </span>`
}

function invitationPart(invitations: SignInLink[]): Html {
  if (invitations.length === 0) return html``
  const rows = invitations.map((link) => [
    html`<strong>${link.label}</strong>`,
    link.role ?? '',
    moment(link.createdAt),
    moment(link.expiresAt),
    html`<form method="post" action="${path}/invitations/${link.id}/withdraw">
      <button class="link danger" aria-label="Withdraw the invitation for ${link.label}">Withdraw</button>
    </form>`,
  ])
  return html`<h2>Open invitations</h2>
    ${table(['For', 'Role', 'Made', 'Ends', ''], rows, 'Open invitations')}`
}

export function invite(): Handler {
  return async (visit) => invitePage(visit)
}

function invitePage({ form }: Visit, refused?: UserError): Page {
  const error = (member: 'name' | 'role') => (refused?.member === member ? refused.message : undefined)
  const body = html`${trail(path, 'Members')} ${heading('Invite a user')}
    <form method="post" action="${path}/invite" class="card">
      <input type="hidden" name="id" value="${formId(form)}" />
      ${inputField({ name: 'label', label: 'For', value: form.get('label') ?? '', error: error('name'), required: true, maxlength: 100, autofocus: true, hint: 'Their name or e-mail, so that you know whom the link is for. No mail is sent: you pass the link on.' })}
      ${selectField({ name: 'role', label: 'Role', value: form.get('role') ?? 'member', error: error('role'), options: roleOptions, hint: 'An owner may change settings and users; a member uses the account.' })}
      <div class="buttons"><button>Make the link</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Invite a user', tab: 'settings', body, status: refused ? 400 : 200 }
}

export function submitInvitation(parts: Parts): Handler {
  return async (visit) => {
    const { account, actor, form } = visit
    try {
      const label = parseName(form.get('label') ?? '')
      const token = await parts.links.invite(account.id, { id: formId(form), label, role: roleOf(form) }, actor)
      const lead = `It lets ${label} join ${account.name}. It works once, within 7 days.`
      return linkPage(parts, `Invitation for ${label}`, lead, token)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      if (error.member === 'repeated') return { location: `${path}?done=invited` }
      return invitePage(visit, error)
    }
  }
}

export function withdraw({ links }: Parts): Handler {
  return async ({ account, actor, params }) => {
    found(await links.withdrawInvitation(account.id, params.id ?? '', actor))
    return { location: `${path}?done=withdrawn` }
  }
}

export function submitRole(parts: Parts): Handler {
  return async (visit) => {
    const { account, actor, form } = visit
    const { id } = await memberOf(parts, visit)
    try {
      found(await parts.users.changeRole(account.id, id, roleOf(form), actor))
      return { location: `${path}?done=role` }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return membersPage(parts, visit, error)
    }
  }
}

export function makeSignInLink(parts: Parts): Handler {
  return async (visit) => {
    const member = await memberOf(parts, visit)
    const token = await parts.links.createSignInLink(member, visit.actor)
    const lead = `It signs ${member.name} in, who may then choose a new password. It works once, within a day.`
    return linkPage(parts, `Sign-in link for ${member.name}`, lead, token)
  }
}

function linkPage({ addresses }: Parts, title: string, lead: string, token: string): Page {
  const body = html`${trail(path, 'Members')} ${heading(title, { lead })}
    ${notice('warning', 'It is shown this once. Pass it on by a way that only they can read.')}
    <section class="card">${copyable('link', `${addresses().dashboardUrl}/links/${token}`, { once: true, label: 'Copy link' })}</section>
    <p><a class="button secondary" href="${path}">Done</a></p>`
  return { title, tab: 'settings', body }
}

export function remove(parts: Parts): Handler {
  return async (visit) => removalPage(parts, visit)
}

async function removalPage(parts: Parts, visit: Visit, refused?: UserError): Promise<Page> {
  const member = await memberOf(parts, visit)
  const keys = (await parts.apiKeys.list(visit.account.id)).filter(({ userId }) => userId === member.id)
  const body = html`${trail(path, 'Members')} ${heading(`Remove ${member.name}?`)}
    ${refused ? notice('bad', refused.message) : nothing}
    <form method="post" class="card">
      <p>
        They are signed out everywhere and cannot sign in any more. Links that they made for others, and that nobody has
        used, end too. This cannot be undone.
      </p>
      ${keysThatDie(member, keys)}
      <div class="buttons"><button class="danger">Remove ${member.name}</button><a href="${path}">Cancel</a></div>
    </form>`
  return { title: 'Remove a user', tab: 'settings', body, status: refused ? 409 : 200 }
}

function keysThatDie({ name }: User, keys: ApiKey[]): Html {
  if (keys.length === 0) return html`<p>${name} holds no API key.</p>`
  const rows = keys.map((key) => [
    html`<strong>${key.name}</strong>`,
    html`<code>${key.prefix}…</code>`,
    moment(key.lastUsedAt),
  ])
  const count = keys.length === 1 ? 'This API key dies' : `These ${keys.length} API keys die`
  return html`${notice('warning', html`<strong>${count} with them</strong>: every system that uses them is refused at once.`)}
    ${table(['Name', 'Key', 'Last used'], rows, 'API keys that die')}`
}

export function submitRemoval(parts: Parts): Handler {
  return async (visit) => {
    try {
      found(await parts.users.remove(visit.account.id, visit.params.id ?? '', visit.actor))
      return { location: `${path}?done=removed` }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return removalPage(parts, visit, error)
    }
  }
}

async function memberOf({ users }: Parts, { account, params }: Visit): Promise<User> {
  const user = await users.get(params.id ?? '')
  return found(user?.accountId === account.id && user)
}

/** @throws {UserError} */
function roleOf(form: URLSearchParams): Role {
  const role = roles.find((each) => each === form.get('role'))
  if (role === undefined) throw new UserError('Choose a role.', 'role')
  return role
}
