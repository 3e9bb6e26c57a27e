/** Every route of the dashboard, and who may use it: the tests go through this list, and fail when it is not all. */
import type { Sessions } from '../../src/domain/accounts/sessions.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { emptyState } from '../../src/domain/browser-contexts/storage-state.ts'
import { putArtifact } from '../../src/domain/runs/artifacts.ts'
import { dashboardApp } from '../../src/surfaces/dashboard/dashboard.ts'
import type { Dependencies } from '../../src/surfaces/dashboard/dependencies.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'

/** What the `:id` of a route is an id of; workflows belong to no account. */
type Thing = 'apiKey' | 'browserContext' | 'user' | 'invitation' | 'run' | 'workflow'

export interface Route {
  method: 'GET' | 'POST'
  path: string
  who: 'everyone' | 'users' | 'owners'
  of: Thing | undefined
  /** It answers for as long as the reader listens. */
  isStream: boolean
}

const list: [route: string, who: Route['who'], of?: Thing | undefined, isStream?: 'stream'][] = [
  ['GET /sign-in', 'everyone'],
  ['POST /sign-in', 'everyone'],
  ['POST /sign-out', 'everyone'],
  ['GET /links/:token', 'everyone'],
  ['POST /links/:token', 'everyone'],
  ['GET /', 'users'],
  ['GET /runs', 'users'],
  ['GET /runs/changes', 'users', undefined, 'stream'],
  ['GET /runs/:id', 'users', 'run'],
  ['GET /runs/:id/changes', 'users', 'run', 'stream'],
  ['GET /runs/:id/artifacts/:name', 'users', 'run'],
  ['GET /runs/:id/cancel', 'users', 'run'],
  ['POST /runs/:id/cancel', 'users', 'run'],
  ['GET /workflows', 'users'],
  ['GET /workflows/:id', 'users', 'workflow'],
  ['POST /workflows/:id', 'users', 'workflow'],
  ['GET /browser-contexts', 'users'],
  ['GET /browser-contexts/new', 'users'],
  ['POST /browser-contexts/new', 'users'],
  ['GET /browser-contexts/:id', 'users', 'browserContext'],
  ['POST /browser-contexts/:id', 'users', 'browserContext'],
  ['GET /browser-contexts/:id/rename', 'users', 'browserContext'],
  ['POST /browser-contexts/:id/rename', 'users', 'browserContext'],
  ['GET /browser-contexts/:id/delete', 'users', 'browserContext'],
  ['POST /browser-contexts/:id/delete', 'users', 'browserContext'],
  ['GET /browser-contexts/:id/versions/:version/restore', 'users', 'browserContext'],
  ['POST /browser-contexts/:id/versions/:version/restore', 'users', 'browserContext'],
  ['GET /api-keys', 'users'],
  ['GET /api-keys/new', 'users'],
  ['POST /api-keys/new', 'users'],
  ['GET /api-keys/:id/rename', 'users', 'apiKey'],
  ['POST /api-keys/:id/rename', 'users', 'apiKey'],
  ['GET /api-keys/:id/rotate', 'users', 'apiKey'],
  ['POST /api-keys/:id/rotate', 'users', 'apiKey'],
  ['GET /api-keys/:id/delete', 'users', 'apiKey'],
  ['POST /api-keys/:id/delete', 'users', 'apiKey'],
  ['GET /settings', 'users'],
  ['POST /settings', 'owners'],
  ['GET /settings/members', 'users'],
  ['GET /settings/members/invite', 'owners'],
  ['POST /settings/members/invite', 'owners'],
  ['POST /settings/members/invitations/:id/withdraw', 'owners', 'invitation'],
  ['POST /settings/members/:id/role', 'owners', 'user'],
  ['POST /settings/members/:id/sign-in-link', 'owners', 'user'],
  ['GET /settings/members/:id/remove', 'owners', 'user'],
  ['POST /settings/members/:id/remove', 'owners', 'user'],
  ['GET /settings/audit-log', 'owners'],
  ['GET /settings/audit-log.jsonl', 'owners'],
  ['GET /profile', 'users'],
  ['POST /profile', 'users'],
  ['POST /profile/password', 'users'],
]

export const routes: readonly Route[] = list.map(([route, who, of, isStream]) => {
  const [method, path = ''] = route.split(' ')
  return { method: method === 'POST' ? 'POST' : 'GET', path, who, of, isStream: isStream === 'stream' }
})

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}

/** What the dashboard serves, as it says itself. */
export function servedRoutes(): string[] {
  // Nothing but what the list is made of is asked of the parts before a request comes.
  const parts = {
    proxyHops: 0,
    port: 0,
    sessionSecrets: ['x'],
    publicUrl: undefined,
    sessions: {} as Sessions,
    docs: () => undefined,
  }
  const { router } = dashboardApp(parts as unknown as Dependencies) as unknown as Router
  return router.stack.flatMap(({ route }) =>
    Object.keys(route?.methods ?? {}).map((method) => `${method.toUpperCase()} ${route?.path}`),
  )
}

interface Router {
  router: { stack: { route?: { path: string; methods: object } }[] }
}

export type Things = Record<Thing | 'token', string>

/** The route's path to the thing. */
export function pathTo({ path, of }: Route, things: Things): string {
  const toThing = path.replace(':id', of === undefined ? ':id' : things[of]).replace(':token', things.token)
  return toThing.replace(':version', '1').replace(':name', artifact.name)
}

const artifact = { name: 'page.png', mediaType: 'image/png', content: Buffer.from('not drawn') } as const

/** An account with one of everything: two users, an invitation, a key of its owner's, a browser context, a run. */
export async function newThings(
  served: DashboardService,
): Promise<{ owner: SignedInUser; member: SignedInUser; things: Things }> {
  const { domain, executionUrl } = served
  const owner = await signIn(served, { scopesEnabled: true })
  const { accountId, id: userId } = owner
  const member = await signIn(served, { accountId, role: 'member', name: 'Bo' })
  const draft = { accountId, userId, name: 'Key', scopes: null, expiresAt: null }
  const key = await domain.apiKeys.create(draft, operator)
  const token = await domain.links.invite(accountId, { label: 'Cy', role: 'member' }, operator)
  const [invitation] = await domain.links.listInvitations(accountId)
  const queued = await sendRaw(executionUrl, {
    method: 'PUT',
    path: '/v1/execution/queue-remote/greet',
    headers: ['Authorization', `Bearer ${key.value}`, 'Content-Type', 'application/json'],
    body: '{"variableData":{"name":"Ada"}}',
  })
  const { id: run } = JSON.parse(queued.text)
  await domain.store.write((tx) => putArtifact(tx, { runId: run, attempt: 1 }, artifact, Date.now()))
  const { id: browserContext = '' } = (await domain.browserContexts.create(accountId, undefined)) ?? {}
  for (const state of [emptyState, emptyState]) {
    await domain.contextVersions.replace(accountId, browserContext, state, { userId })
  }
  const things = {
    apiKey: key.id,
    browserContext,
    user: member.id,
    invitation: invitation?.id ?? '',
    run,
    workflow: 'greet',
    token,
  }
  return { owner, member, things }
}
