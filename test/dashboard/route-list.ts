/** Every route of the dashboard, with the role that it needs by the table. A test compares the list with the app's routes. */
import { Readable } from 'node:stream'
import type { Role } from '../../src/domain/accounts/roles.ts'
import type { Sessions } from '../../src/domain/accounts/sessions.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { emptyState } from '../../src/domain/browser-contexts/storage-state.ts'
import { putArtifact } from '../../src/domain/queue/attempt-artifacts.ts'
import { dashboardApp } from '../../src/surfaces/dashboard/dashboard.ts'
import type { Dependencies } from '../../src/surfaces/dashboard/dependencies.ts'
import { type PageRoute, pageRoles } from '../../src/surfaces/dashboard/page-roles.ts'
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
  | 'file'
  | 'schedule'
  | 'session'
  | 'environment'
  | 'bulkAction'
  | 'webhook'
  | 'rule'
  | 'workflow'

export interface Route {
  method: 'GET' | 'POST'
  path: string
  /** As the table says. */
  role: Role | 'everyone'
  of: ItemKind | undefined
  /** The response does not end. */
  isStream: boolean
}

const list: [route: PageRoute, of?: ItemKind | undefined, isStream?: 'stream'][] = [
  ['GET /sign-in'],
  ['POST /sign-in'],
  ['POST /sign-in/code'],
  ['GET /sign-in/provider'],
  ['GET /sign-in/provider/callback'],
  ['GET /sign-out/provider'],
  ['POST /sign-out'],
  ['GET /links/:token'],
  ['POST /links/:token'],
  ['GET /answer/:answer'],
  ['POST /answer/:answer'],
  ['POST /environment'],
  ['GET /'],
  ['GET /go-to'],
  ['GET /runs'],
  ['GET /runs/changes', undefined, 'stream'],
  ['GET /runs/bulk-cancel'],
  ['POST /runs/bulk-cancel'],
  ['GET /runs/bulk-rerun'],
  ['POST /runs/bulk-rerun'],
  ['GET /runs/bulk-actions/:id', 'bulkAction'],
  ['GET /runs/bulk-actions/:id/changes', 'bulkAction', 'stream'],
  ['GET /runs/:id', 'run'],
  ['GET /runs/:id/changes', 'run', 'stream'],
  ['GET /runs/:id/live', 'run', 'stream'],
  ['POST /runs/:id/live/take-over', 'run'],
  ['POST /runs/:id/live/return-control', 'run'],
  ['POST /runs/:id/live/input', 'run'],
  ['GET /runs/:id/artifacts/:name', 'run'],
  ['GET /trace-viewer/runs/:id/:trace', 'run'],
  ['POST /files'],
  ['GET /files/:id', 'file'],
  ['GET /waits'],
  ['GET /runs/:id/waits/:wait', 'waitingRun'],
  ['POST /runs/:id/waits/:wait', 'waitingRun'],
  ['GET /runs/:id/cancel', 'run'],
  ['POST /runs/:id/cancel', 'run'],
  ['POST /runs/:id/follow', 'run'],
  ['GET /runs/:id/delete', 'run'],
  ['POST /runs/:id/delete', 'run'],
  ['GET /workflows'],
  ['GET /workflows/:id', 'workflow'],
  ['GET /docs/workflows'],
  ['GET /docs/workflows.json'],
  ['GET /docs/workflows.js'],
  ['GET /docs/workflows/'],
  ['GET /docs/workflows/:id', 'workflow'],
  ['POST /workflows/:id', 'workflow'],
  ['GET /promote'],
  ['POST /promote'],
  ['GET /browser-contexts'],
  ['GET /browser-contexts/new'],
  ['POST /browser-contexts/new'],
  ['GET /browser-contexts/:id', 'browserContext'],
  ['POST /browser-contexts/:id', 'browserContext'],
  ['GET /browser-contexts/:id/rename', 'browserContext'],
  ['POST /browser-contexts/:id/rename', 'browserContext'],
  ['GET /browser-contexts/:id/delete', 'browserContext'],
  ['POST /browser-contexts/:id/delete', 'browserContext'],
  ['GET /browser-contexts/:id/sign-in', 'browserContext'],
  ['POST /browser-contexts/:id/sign-in', 'browserContext'],
  ['POST /browser-contexts/:id/sign-in/now', 'browserContext'],
  ['GET /browser-contexts/:id/sign-in/by-hand', 'browserContext'],
  ['POST /browser-contexts/:id/sign-in/by-hand', 'browserContext'],
  ['POST /browser-contexts/:id/sign-in/by-hand/cancel', 'browserContext'],
  ['GET /browser-contexts/:id/sign-in/delete', 'browserContext'],
  ['POST /browser-contexts/:id/sign-in/delete', 'browserContext'],
  ['GET /browser-contexts/:id/versions/:version/restore', 'browserContext'],
  ['POST /browser-contexts/:id/versions/:version/restore', 'browserContext'],
  ['GET /schedules'],
  ['GET /schedules/new'],
  ['POST /schedules/new'],
  ['GET /schedules/next-times'],
  ['GET /schedules/:id', 'schedule'],
  ['GET /schedules/:id/edit', 'schedule'],
  ['POST /schedules/:id/edit', 'schedule'],
  ['POST /schedules/:id/state', 'schedule'],
  ['POST /schedules/:id/trigger', 'schedule'],
  ['GET /schedules/:id/delete', 'schedule'],
  ['POST /schedules/:id/delete', 'schedule'],
  ['GET /webhooks'],
  ['GET /webhooks/new'],
  ['POST /webhooks/new'],
  ['GET /webhooks/:id', 'webhook'],
  ['GET /webhooks/:id/edit', 'webhook'],
  ['POST /webhooks/:id/edit', 'webhook'],
  ['POST /webhooks/:id/state', 'webhook'],
  ['POST /webhooks/:id/test', 'webhook'],
  ['GET /webhooks/:id/rotate', 'webhook'],
  ['POST /webhooks/:id/rotate', 'webhook'],
  ['GET /webhooks/:id/redeliver', 'webhook'],
  ['POST /webhooks/:id/redeliver', 'webhook'],
  ['GET /webhooks/:id/delete', 'webhook'],
  ['POST /webhooks/:id/delete', 'webhook'],
  ['GET /webhooks/:id/deliveries/:delivery', 'webhook'],
  ['POST /webhooks/:id/deliveries/:delivery/redeliver', 'webhook'],
  ['GET /api-keys'],
  ['GET /api-keys/new'],
  ['POST /api-keys/new'],
  ['GET /api-keys/:id/rename', 'apiKey'],
  ['POST /api-keys/:id/rename', 'apiKey'],
  ['GET /api-keys/:id/rotate', 'apiKey'],
  ['POST /api-keys/:id/rotate', 'apiKey'],
  ['GET /api-keys/:id/delete', 'apiKey'],
  ['POST /api-keys/:id/delete', 'apiKey'],
  ['GET /settings'],
  ['POST /settings'],
  ['GET /settings/members'],
  ['GET /settings/members/invite'],
  ['POST /settings/members/invite'],
  ['POST /settings/members/invitations/:id/withdraw', 'invitation'],
  ['POST /settings/members/:id/role', 'user'],
  ['POST /settings/members/:id/sign-in-link', 'user'],
  ['POST /settings/members/:id/allow', 'user'],
  ['GET /settings/members/:id/remove', 'user'],
  ['POST /settings/members/:id/remove', 'user'],
  ['GET /settings/environments'],
  ['POST /settings/environments'],
  ['GET /settings/environments/:id/remove', 'environment'],
  ['POST /settings/environments/:id/remove', 'environment'],
  ['GET /settings/secrets'],
  ['POST /settings/secrets'],
  ['POST /settings/secrets/delete'],
  ['GET /settings/notifications'],
  ['GET /settings/notifications/new'],
  ['POST /settings/notifications/new'],
  ['GET /settings/notifications/:id', 'rule'],
  ['GET /settings/notifications/:id/edit', 'rule'],
  ['POST /settings/notifications/:id/edit', 'rule'],
  ['POST /settings/notifications/:id/state', 'rule'],
  ['POST /settings/notifications/:id/test', 'rule'],
  ['GET /settings/notifications/:id/delete', 'rule'],
  ['POST /settings/notifications/:id/delete', 'rule'],
  ['GET /settings/workers'],
  ['GET /settings/usage'],
  ['GET /settings/usage.csv'],
  ['GET /settings/audit-log'],
  ['GET /settings/audit-log.jsonl'],
  ['GET /profile'],
  ['POST /profile'],
  ['POST /profile/password'],
  ['POST /profile/sessions/:id/end', 'session'],
  ['POST /profile/sign-out-everywhere'],
  ['GET /profile/two-factor'],
  ['GET /profile/two-factor/set-up'],
  ['POST /profile/two-factor/set-up'],
  ['POST /profile/two-factor/recovery-codes'],
  ['POST /profile/two-factor/remove'],
]

export const routes: readonly Route[] = list.map(([route, of, isStream]) => {
  const [method, path = ''] = route.split(' ')
  const role = pageRoles[route]
  return { method: method === 'POST' ? 'POST' : 'GET', path, role, of, isStream: isStream === 'stream' }
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
  const member = await signIn(dashboard, { accountId, role: 'developer', name: 'Bo' })
  const draft = { accountId, userId, name: 'Key', scopes: null, expiresAt: null }
  const key = await domain.apiKeys.create(draft, operator)
  const token = await domain.links.invite(accountId, { label: 'Cy', role: 'developer' }, operator)
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
    const prepared = { ...each, sizeBytes: each.content.length, blob: null }
    await domain.store.write((tx) => putArtifact(tx, { runId: run, attempt: 1 }, prepared, Date.now()))
  }
  const { id: browserContext = '' } = (await domain.browserContexts.create(accountId, undefined)) ?? {}
  for (const state of [emptyState, emptyState]) {
    await domain.contextVersions.replace(accountId, browserContext, state, { userId })
  }
  const environment = await domain.environments.add(accountId, { name: 'staging' }, operator)
  const { webhook, delivery } = await createWebhook(dashboard, accountId)
  const items = {
    bulkAction: await createBulkAction(dashboard, accountId, userId),
    apiKey: key.id,
    browserContext,
    user: member.id,
    invitation: invitation?.id ?? '',
    run,
    waitingRun: waiting,
    file: await createFile(dashboard, accountId),
    schedule: scheduled.id,
    environment: environment.id,
    session: (await domain.sessions.list(userId))[0]?.id ?? '',
    webhook,
    delivery,
    rule: await createRule(dashboard, accountId),
    workflow: 'greet',
    token,
    answer: new URL(link.url).pathname.split('/').at(-1) ?? '',
  }
  return { owner, member, items }
}

async function createFile({ domain }: DashboardService, accountId: string): Promise<string> {
  const content = Readable.from([Buffer.from('the content of a file')])
  const file = { name: 'notes.txt', mediaType: 'text/plain', declaredBytes: undefined, content }
  return (await domain.files.create(accountId, file, operator)).id
}

/** Creates an action without runs. */
async function createBulkAction({ domain }: DashboardService, accountId: string, userId: string): Promise<string> {
  const filter = { status: ['expired'] } as const
  const given = { kind: 'cancel', filter, apiKeyId: null, userId, usesBrowserContexts: true } as const
  const created = await domain.bulkActions.create(accountId, given, operator)
  if (created.kind !== 'created') throw new Error('The bulk action was not created.')
  return created.action.id
}

/** Creates a disabled rule. */
async function createRule({ domain }: DashboardService, accountId: string): Promise<string> {
  const target = { channel: 'slack', url: 'https://hooks.example/', enabled: false } as const
  const created = await domain.notificationRules.create(
    accountId,
    { name: 'Rule', events: ['run.failed'], ...target },
    operator,
  )
  if (!created || created === 'repeated') throw new Error('The rule was not created.')
  return created.rule.id
}

/** Creates a paused endpoint with a delivery, so that nothing is sent. */
async function createWebhook({ domain }: DashboardService, accountId: string) {
  const given = { url: 'https://hooks.example/', events: ['run.failed'], enabled: false } as const
  const created = await domain.webhookEndpoints.create(accountId, given, operator)
  if (!created || created === 'repeated') throw new Error('The endpoint was not created.')
  const delivery = await domain.webhookDeliveries.sendTest(accountId, created.endpoint.id, operator)
  return { webhook: created.endpoint.id, delivery: delivery?.id ?? '' }
}
