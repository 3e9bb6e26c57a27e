/** Every route of the dashboard, with who may use it. A test compares the list with the app's routes. */
import type { Sessions } from '../../src/domain/accounts/sessions.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { emptyState } from '../../src/domain/browser-contexts/storage-state.ts'
import { putArtifact } from '../../src/domain/queue/attempts.ts'
import { dashboardApp } from '../../src/surfaces/dashboard/dashboard.ts'
import type { Dependencies } from '../../src/surfaces/dashboard/dependencies.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'

/** The kind of item that a route's `:id` identifies. Workflows belong to no account. */
type ItemKind =
  | 'apiKey'
  | 'browserContext'
  | 'user'
  | 'invitation'
  | 'run'
  | 'waitingRun'
  | 'schedule'
  | 'session'
  | 'bulkAction'
  | 'webhook'
  | 'workflow'

export interface Route {
  method: 'GET' | 'POST'
  path: string
  who: 'everyone' | 'users' | 'owners'
  of: ItemKind | undefined
  /** The response does not end. */
  isStream: boolean
}

const list: [route: string, who: Route['who'], of?: ItemKind | undefined, isStream?: 'stream'][] = [
  ['GET /sign-in', 'everyone'],
  ['POST /sign-in', 'everyone'],
  ['POST /sign-in/code', 'everyone'],
  ['POST /sign-out', 'everyone'],
  ['GET /links/:token', 'everyone'],
  ['POST /links/:token', 'everyone'],
  ['GET /answer/:answer', 'everyone'],
  ['POST /answer/:answer', 'everyone'],
  ['GET /', 'users'],
  ['GET /go-to', 'users'],
  ['GET /runs', 'users'],
  ['GET /runs/changes', 'users', undefined, 'stream'],
  ['GET /runs/bulk-cancel', 'users'],
  ['POST /runs/bulk-cancel', 'users'],
  ['GET /runs/bulk-rerun', 'users'],
  ['POST /runs/bulk-rerun', 'users'],
  ['GET /runs/bulk-actions/:id', 'users', 'bulkAction'],
  ['GET /runs/bulk-actions/:id/changes', 'users', 'bulkAction', 'stream'],
  ['GET /runs/:id', 'users', 'run'],
  ['GET /runs/:id/changes', 'users', 'run', 'stream'],
  ['GET /runs/:id/live', 'users', 'run', 'stream'],
  ['POST /runs/:id/live/take-over', 'users', 'run'],
  ['POST /runs/:id/live/return-control', 'users', 'run'],
  ['POST /runs/:id/live/input', 'users', 'run'],
  ['GET /runs/:id/artifacts/:name', 'users', 'run'],
  ['GET /trace-viewer/runs/:id/:trace', 'users', 'run'],
  ['GET /waits', 'users'],
  ['GET /runs/:id/waits/:wait', 'users', 'waitingRun'],
  ['POST /runs/:id/waits/:wait', 'users', 'waitingRun'],
  ['GET /runs/:id/cancel', 'users', 'run'],
  ['POST /runs/:id/cancel', 'users', 'run'],
  ['GET /runs/:id/delete', 'users', 'run'],
  ['POST /runs/:id/delete', 'users', 'run'],
  ['GET /workflows', 'users'],
  ['GET /workflows/:id', 'users', 'workflow'],
  ['GET /docs/workflows', 'users'],
  ['GET /docs/workflows.json', 'users'],
  ['GET /docs/workflows.js', 'users'],
  ['GET /docs/workflows/', 'users'],
  ['GET /docs/workflows/:id', 'users', 'workflow'],
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
  ['GET /schedules', 'users'],
  ['GET /schedules/new', 'users'],
  ['POST /schedules/new', 'users'],
  ['GET /schedules/next-times', 'users'],
  ['GET /schedules/:id', 'users', 'schedule'],
  ['GET /schedules/:id/edit', 'users', 'schedule'],
  ['POST /schedules/:id/edit', 'users', 'schedule'],
  ['POST /schedules/:id/state', 'users', 'schedule'],
  ['POST /schedules/:id/trigger', 'users', 'schedule'],
  ['GET /schedules/:id/delete', 'users', 'schedule'],
  ['POST /schedules/:id/delete', 'users', 'schedule'],
  ['GET /webhooks', 'users'],
  ['GET /webhooks/new', 'users'],
  ['POST /webhooks/new', 'users'],
  ['GET /webhooks/:id', 'users', 'webhook'],
  ['GET /webhooks/:id/edit', 'users', 'webhook'],
  ['POST /webhooks/:id/edit', 'users', 'webhook'],
  ['POST /webhooks/:id/state', 'users', 'webhook'],
  ['POST /webhooks/:id/test', 'users', 'webhook'],
  ['GET /webhooks/:id/rotate', 'users', 'webhook'],
  ['POST /webhooks/:id/rotate', 'users', 'webhook'],
  ['GET /webhooks/:id/redeliver', 'users', 'webhook'],
  ['POST /webhooks/:id/redeliver', 'users', 'webhook'],
  ['GET /webhooks/:id/delete', 'users', 'webhook'],
  ['POST /webhooks/:id/delete', 'users', 'webhook'],
  ['GET /webhooks/:id/deliveries/:delivery', 'users', 'webhook'],
  ['POST /webhooks/:id/deliveries/:delivery/redeliver', 'users', 'webhook'],
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
  ['GET /settings/secrets', 'users'],
  ['POST /settings/secrets', 'users'],
  ['POST /settings/secrets/delete', 'users'],
  ['GET /settings/workers', 'users'],
  ['GET /settings/audit-log', 'owners'],
  ['GET /settings/audit-log.jsonl', 'owners'],
  ['GET /profile', 'users'],
  ['POST /profile', 'users'],
  ['POST /profile/password', 'users'],
  ['POST /profile/sessions/:id/end', 'users', 'session'],
  ['POST /profile/sign-out-everywhere', 'users'],
  ['GET /profile/two-factor', 'users'],
  ['GET /profile/two-factor/set-up', 'users'],
  ['POST /profile/two-factor/set-up', 'users'],
  ['POST /profile/two-factor/recovery-codes', 'users'],
  ['POST /profile/two-factor/remove', 'users'],
]

export const routes: readonly Route[] = list.map(([route, who, of, isStream]) => {
  const [method, path = ''] = route.split(' ')
  return { method: method === 'POST' ? 'POST' : 'GET', path, who, of, isStream: isStream === 'stream' }
})

export function routeName({ method, path }: Route): string {
  return `${method} ${path}`
}

/** Reads the routes that the app registers. */
export function servedRoutes(): string[] {
  // Registration uses only these dependencies.
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

export type Items = Record<ItemKind | 'delivery' | 'token' | 'answer', string>

/** Fills in the route's parameters. */
export function routePath({ path, of }: Route, items: Items): string {
  const withItem = path.replace(':id', of === undefined ? ':id' : items[of]).replace(':token', items.token)
  return withItem
    .replace(':answer', items.answer)
    .replace(':delivery', items.delivery)
    .replace(':version', '1')
    .replace(':name', artifact.name)
    .replace(':wait', 'approval')
    .replace(':trace', trace.name)
}

const artifact = { name: 'page.png', mediaType: 'image/png', content: Buffer.from('not drawn') } as const
const trace = { ...artifact, name: 'trace.zip', mediaType: 'application/zip', kind: 'evidence' } as const

/** Creates an account with two users and one of each kind of item. */
export async function createItems(
  dashboard: DashboardService,
): Promise<{ owner: SignedInUser; member: SignedInUser; items: Items }> {
  const { domain, executionUrl } = dashboard
  const owner = await signIn(dashboard, { scopesEnabled: true })
  const { accountId, id: userId } = owner
  const member = await signIn(dashboard, { accountId, role: 'member', name: 'Bo' })
  const draft = { accountId, userId, name: 'Key', scopes: null, expiresAt: null }
  const key = await domain.apiKeys.create(draft, operator)
  const token = await domain.links.invite(accountId, { label: 'Cy', role: 'member' }, operator)
  const [invitation] = await domain.links.listInvitations(accountId)
  const call = async (method: string, path: string, body: string) => {
    const headers = ['Authorization', `Bearer ${key.value}`, 'Content-Type', 'application/json']
    const response = await sendRaw(executionUrl, { method, path: `/v1/execution/${path}`, headers, body })
    return JSON.parse(response.text)
  }
  const { id: run } = await call('PUT', 'queue-remote/greet', '{"variableData":{"name":"Ada"}}')
  const { id: waiting } = await call('PUT', 'queue-remote/approve', '{"variableData":{}}')
  const link = await call('POST', `runs/${waiting}/waits/approval/links`, '{}')
  const schedule = '{"workflowId":"greet","variableData":{"name":"Ada"},"cron":"0 0 29 2 *"}'
  const scheduled = await call('POST', 'schedules', schedule)
  for (const each of [artifact, trace]) {
    await domain.store.write((tx) => putArtifact(tx, { runId: run, attempt: 1 }, each, Date.now()))
  }
  const { id: browserContext = '' } = (await domain.browserContexts.create(accountId, undefined)) ?? {}
  for (const state of [emptyState, emptyState]) {
    await domain.contextVersions.replace(accountId, browserContext, state, { userId })
  }
  const { webhook, delivery } = await createWebhook(dashboard, accountId)
  const items = {
    bulkAction: await createBulkAction(dashboard, accountId, userId),
    apiKey: key.id,
    browserContext,
    user: member.id,
    invitation: invitation?.id ?? '',
    run,
    waitingRun: waiting,
    schedule: scheduled.id,
    session: (await domain.sessions.list(userId))[0]?.id ?? '',
    webhook,
    delivery,
    workflow: 'greet',
    token,
    answer: new URL(link.url).pathname.split('/').at(-1) ?? '',
  }
  return { owner, member, items }
}

/** Creates an action without runs. */
async function createBulkAction({ domain }: DashboardService, accountId: string, userId: string): Promise<string> {
  const filter = { status: ['expired'] } as const
  const given = { kind: 'cancel', filter, apiKeyId: null, userId, usesBrowserContexts: true } as const
  const created = await domain.bulkActions.create(accountId, given, operator)
  if (created.kind !== 'created') throw new Error('The bulk action was not created.')
  return created.action.id
}

/** Creates a paused endpoint with a delivery, so that nothing is sent. */
async function createWebhook({ domain }: DashboardService, accountId: string) {
  const given = { url: 'https://hooks.example/', events: ['run.failed'], enabled: false } as const
  const created = await domain.webhookEndpoints.create(accountId, given, operator)
  if (!created || created === 'repeated') throw new Error('The endpoint was not created.')
  const delivery = await domain.webhookDeliveries.sendTest(accountId, created.endpoint.id, operator)
  return { webhook: created.endpoint.id, delivery: delivery?.id ?? '' }
}
