/** The members of the account: invitations, roles, sign-in links and removal. */
import { parseName, type Role, roles, type User, UserError } from '../../../domain/accounts/user.ts'
import type { Dependencies } from '../dependencies.ts'
import { settingsPage } from '../layout.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import * as templates from './member-templates.ts'

const path = '/settings/members'

export const listMembers: PageHandler = (request, deps) => membersPage(request, deps)

async function membersPage(request: PageRequest, { users, links }: Dependencies, error?: UserError): Promise<Page> {
  const { account, user, query } = request
  const [members, invitations] = await Promise.all([users.list(account.id), links.listInvitations(account.id)])
  const list = { user, members, invitations, done: query.get('done') ?? '', error: error?.message }
  // An error about no field is a conflict with the account's state.
  const status = error ? (error.member ? 400 : 409) : 200
  return settingsPage(request, path, templates.renderMembers(list), status)
}

export const showInvite: PageHandler = async ({ form }) => invitePage(form)

function invitePage(form: URLSearchParams, error?: UserError): Page {
  const body = templates.renderInvite(form, formId(form), error)
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
  return { title, tab: 'settings', body: templates.renderLink(title, lead, url) }
}

export const confirmRemoval: PageHandler = (request, deps) => removalPage(request, deps)

async function removalPage(request: PageRequest, deps: Dependencies, error?: UserError): Promise<Page> {
  const member = await findMember(request, deps)
  const keys = (await deps.apiKeys.list(request.account.id)).filter(({ userId }) => userId === member.id)
  const body = templates.renderRemoval(member, keys, error?.message)
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
