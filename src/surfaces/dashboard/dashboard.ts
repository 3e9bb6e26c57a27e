/** The dashboard: every page and action, with what guards it besides the roles of `pageRoles`. */
import express, { type Express } from 'express'
import { stateBytesMax } from '../../domain/browser-contexts/storage-state.ts'
import { partBytes } from '../../domain/files/files.ts'
import * as apiKeys from './api-keys/api-key-pages.ts'
import { assetRouter } from './assets.ts'
import * as contexts from './browser-contexts/context-pages.ts'
import { fileField } from './browser-contexts/context-pages.ts'
import * as signIns from './browser-contexts/sign-in-pages.ts'
import type { Dependencies } from './dependencies.ts'
import { errorPages, showDestinations, unknownPage } from './error-pages.ts'
import * as control from './live-view/live-view-handlers.ts'
import { streamLiveView, workerConnections } from './live-view/live-view-handlers.ts'
import * as notifications from './notifications/rule-pages.ts'
import { showOverview } from './overview/overview-page.ts'
import { assignRequestId, protectPages, publicPages, setUpPath, userPages } from './page-routes.ts'
import * as bulkActions from './runs/bulk-action-pages.ts'
import { streamAccountChanges, streamBulkActionChanges, streamRunChanges } from './runs/change-streams.ts'
import { downloadArtifact } from './runs/run-artifacts.ts'
import { downloadFile, uploadFile } from './runs/run-files.ts'
import { followRun } from './runs/run-following.ts'
import * as runs from './runs/run-handlers.ts'
import { sendNextTimes } from './schedules/next-times.ts'
import * as schedules from './schedules/schedule-pages.ts'
import * as account from './settings/account-settings-page.ts'
import * as auditLog from './settings/audit-log-page.ts'
import * as environments from './settings/environments-page.ts'
import * as members from './settings/member-pages.ts'
import * as profile from './settings/profile-page.ts'
import * as sessions from './settings/session-list.ts'
import * as twoFactor from './settings/two-factor-pages.ts'
import * as usage from './settings/usage-page.ts'
import * as values from './settings/values-page.ts'
import * as workers from './settings/workers-page.ts'
import { linkLimits, passwordLimit, providerLimit } from './sign-in/attempt-limits.ts'
import * as code from './sign-in/code-page.ts'
import * as links from './sign-in/link-pages.ts'
import * as provider from './sign-in/provider-pages.ts'
import * as signIn from './sign-in/sign-in-page.ts'
import { sendTrace, traceViewer } from './trace-viewer/trace-viewer.ts'
import * as answers from './waits/answer-link.ts'
import * as waits from './waits/wait-pages.ts'
import * as webhookActions from './webhooks/webhook-action-handlers.ts'
import * as webhooks from './webhooks/webhook-pages.ts'
import * as promotion from './workflows/promotion-page.ts'
import * as workflows from './workflows/workflow-pages.ts'

type PublicPages = ReturnType<typeof publicPages>
type UserPages = ReturnType<typeof userPages>

export function dashboardApp(deps: Dependencies): Express {
  const app = express().disable('x-powered-by').disable('etag').enable('strict routing')
  app.set('trust proxy', deps.proxyHops)
  if (deps.before) app.use(deps.before)
  // Workers reach this process by any name.
  app.use(workerConnections(deps.liveView))
  if (deps.checkHost) app.use(deps.checkHost)
  app.use(assetRouter())
  app.use(traceViewer(deps))
  app.use(assignRequestId(), deps.docs)
  app.use(...protectPages(deps))

  routeSignIn(publicPages(app, deps), deps)
  const pages = userPages(app, deps)
  pages.get('/', showOverview)
  pages.get('/go-to', showDestinations)
  routeRuns(pages)
  routeWorkflows(pages)
  routeBrowserContexts(pages)
  routeWebhooks(pages)
  routeSchedules(pages)
  routeApiKeys(pages)
  routeSettings(pages)
  routeNotifications(pages)
  routeProfile(pages, deps)

  app.use(unknownPage())
  app.use(errorPages(deps))
  return app
}

function routeSignIn(pages: PublicPages, deps: Dependencies): void {
  pages.get('/sign-in', signIn.showSignIn)
  pages.post('/sign-in', signIn.signIn, ...signIn.limitSignIn(deps))
  pages.post('/sign-in/code', code.signInWithCode, ...code.limitCodes(deps))
  const limitProvider = providerLimit(deps)
  pages.get('/sign-in/provider', provider.beginProviderSignIn, limitProvider)
  pages.get('/sign-in/provider/callback', provider.completeProviderSignIn, limitProvider)
  pages.get('/sign-out/provider', provider.signOutOfProvider, limitProvider)
  pages.post('/sign-out', signIn.signOut)
  pages.get('/links/:token', links.showLink)
  pages.post('/links/:token', links.useLink, ...linkLimits(deps))
  pages.get('/answer/:answer', answers.showAnswerLink)
  pages.postAfter('/answer/:answer', [...linkLimits(deps), answers.requireAnswerLink(deps)], answers.answerByLink)
}

function routeRuns(pages: UserPages): void {
  pages.get('/runs', runs.listRuns)
  pages.stream('/runs/changes', streamAccountChanges)
  pages.get('/runs/bulk-cancel', bulkActions.previewCancel)
  pages.post('/runs/bulk-cancel', bulkActions.startCancel)
  pages.get('/runs/bulk-rerun', bulkActions.previewRerun)
  pages.post('/runs/bulk-rerun', bulkActions.startRerun)
  pages.get('/runs/bulk-actions/:id', bulkActions.showBulkAction)
  pages.stream('/runs/bulk-actions/:id/changes', streamBulkActionChanges)
  pages.get('/runs/:id', runs.showRun)
  pages.stream('/runs/:id/changes', streamRunChanges)
  pages.stream('/runs/:id/live', streamLiveView)
  pages.command('/runs/:id/live/take-over', control.takeOver)
  pages.command('/runs/:id/live/return-control', control.returnControl)
  pages.command('/runs/:id/live/input', control.sendInput)
  pages.stream('/runs/:id/artifacts/:name', downloadArtifact)
  pages.transfer('/files', partBytes, uploadFile)
  pages.stream('/files/:id', downloadFile)
  pages.stream('/trace-viewer/runs/:id/:trace', sendTrace)
  pages.post('/runs/:id/follow', followRun)
  pages.get('/runs/:id/cancel', runs.confirmCancellation)
  pages.post('/runs/:id/cancel', runs.cancelRun)
  pages.get('/waits', waits.listWaits)
  pages.get('/runs/:id/waits/:wait', waits.showWait)
  pages.post('/runs/:id/waits/:wait', waits.answerWait)
  pages.get('/runs/:id/delete', runs.confirmRunDeletion)
  pages.post('/runs/:id/delete', runs.deleteRun)
}

function routeWorkflows(pages: UserPages): void {
  pages.get('/workflows', workflows.listWorkflows)
  pages.get('/promote', promotion.showPromotion)
  pages.post('/promote', promotion.promoteWorkflows)
  pages.get('/workflows/:id', workflows.showWorkflow)
  pages.post('/workflows/:id', workflows.queueRun)
  for (const path of [
    '/docs/workflows',
    '/docs/workflows.json',
    '/docs/workflows.js',
    '/docs/workflows/',
    '/docs/workflows/:id',
  ] as const)
    pages.stream(path, workflows.showWorkflowDocs)
}

function routeBrowserContexts(pages: UserPages): void {
  pages.get('/browser-contexts', contexts.listContexts)
  pages.get('/browser-contexts/new', contexts.showNewContext)
  pages.post('/browser-contexts/new', contexts.createContext)
  pages.get('/browser-contexts/:id', contexts.showContext)
  pages.upload('/browser-contexts/:id', fileField, stateBytesMax, contexts.uploadState)
  pages.get('/browser-contexts/:id/rename', contexts.showContextRename)
  pages.post('/browser-contexts/:id/rename', contexts.renameContext)
  pages.get('/browser-contexts/:id/delete', contexts.confirmContextDeletion)
  pages.post('/browser-contexts/:id/delete', contexts.deleteContext)
  pages.get('/browser-contexts/:id/sign-in', signIns.showSignInForm)
  pages.post('/browser-contexts/:id/sign-in', signIns.setSignIn)
  pages.post('/browser-contexts/:id/sign-in/now', signIns.signInNow)
  pages.get('/browser-contexts/:id/sign-in/by-hand', signIns.showByHand)
  pages.post('/browser-contexts/:id/sign-in/by-hand', signIns.startByHand)
  pages.post('/browser-contexts/:id/sign-in/by-hand/cancel', signIns.cancelByHand)
  pages.get('/browser-contexts/:id/sign-in/delete', signIns.confirmSignInDeletion)
  pages.post('/browser-contexts/:id/sign-in/delete', signIns.deleteSignIn)
  pages.get('/browser-contexts/:id/versions/:version/restore', contexts.confirmRestore)
  pages.post('/browser-contexts/:id/versions/:version/restore', contexts.restoreVersion)
}

function routeWebhooks(pages: UserPages): void {
  pages.get('/webhooks', webhooks.listEndpoints)
  pages.get('/webhooks/new', webhooks.showNewEndpoint)
  pages.post('/webhooks/new', webhooks.createEndpoint)
  pages.get('/webhooks/:id', webhooks.showEndpoint)
  pages.get('/webhooks/:id/edit', webhooks.showEndpointChange)
  pages.post('/webhooks/:id/edit', webhooks.changeEndpoint)
  pages.post('/webhooks/:id/state', webhookActions.setEnabled)
  pages.post('/webhooks/:id/test', webhookActions.sendTest)
  pages.get('/webhooks/:id/rotate', webhookActions.confirmSecretRotation)
  pages.post('/webhooks/:id/rotate', webhookActions.rotateSecret)
  pages.get('/webhooks/:id/redeliver', webhookActions.showRedelivery)
  pages.post('/webhooks/:id/redeliver', webhookActions.redeliverSince)
  pages.get('/webhooks/:id/delete', webhookActions.confirmEndpointDeletion)
  pages.post('/webhooks/:id/delete', webhookActions.deleteEndpoint)
  pages.get('/webhooks/:id/deliveries/:delivery', webhooks.showDelivery)
  pages.post('/webhooks/:id/deliveries/:delivery/redeliver', webhookActions.redeliver)
}

function routeSchedules(pages: UserPages): void {
  pages.get('/schedules', schedules.listSchedules)
  pages.get('/schedules/new', schedules.showNewSchedule)
  pages.post('/schedules/new', schedules.createSchedule)
  pages.stream('/schedules/next-times', sendNextTimes)
  pages.get('/schedules/:id', schedules.showSchedule)
  pages.get('/schedules/:id/edit', schedules.showScheduleChange)
  pages.post('/schedules/:id/edit', schedules.changeSchedule)
  pages.post('/schedules/:id/state', schedules.setPaused)
  pages.post('/schedules/:id/trigger', schedules.triggerSchedule)
  pages.get('/schedules/:id/delete', schedules.confirmScheduleDeletion)
  pages.post('/schedules/:id/delete', schedules.deleteSchedule)
}

function routeApiKeys(pages: UserPages): void {
  pages.get('/api-keys', apiKeys.listApiKeys)
  pages.get('/api-keys/new', apiKeys.showNewApiKey)
  pages.post('/api-keys/new', apiKeys.createApiKey)
  pages.get('/api-keys/:id/rename', apiKeys.showApiKeyRename)
  pages.post('/api-keys/:id/rename', apiKeys.renameApiKey)
  pages.get('/api-keys/:id/rotate', apiKeys.confirmRotation)
  pages.post('/api-keys/:id/rotate', apiKeys.rotateApiKey)
  pages.get('/api-keys/:id/delete', apiKeys.confirmApiKeyDeletion)
  pages.post('/api-keys/:id/delete', apiKeys.deleteApiKey)
}

function routeSettings(pages: UserPages): void {
  pages.post('/environment', environments.enterEnvironment)
  pages.get('/settings/environments', environments.listEnvironments)
  pages.post('/settings/environments', environments.addEnvironment)
  pages.get('/settings/environments/:id/remove', environments.confirmEnvironmentRemoval)
  pages.post('/settings/environments/:id/remove', environments.removeEnvironment)
  pages.get('/settings', account.showAccount)
  pages.post('/settings', account.changeAccount)
  pages.get('/settings/members', members.listMembers)
  pages.get('/settings/members/invite', members.showInvite)
  pages.post('/settings/members/invite', members.inviteMember)
  pages.post('/settings/members/invitations/:id/withdraw', members.revokeInvitation)
  pages.post('/settings/members/:id/role', members.changeRole)
  pages.post('/settings/members/:id/sign-in-link', members.createSignInLink)
  pages.post('/settings/members/:id/allow', members.allowAgain)
  pages.get('/settings/members/:id/remove', members.confirmRemoval)
  pages.post('/settings/members/:id/remove', members.removeMember)
  pages.get('/settings/secrets', values.listValues)
  pages.post('/settings/secrets', values.storeValue)
  pages.post('/settings/secrets/delete', values.deleteValue)
  pages.get('/settings/workers', workers.listWorkers)
  pages.get('/settings/usage', usage.showUsage)
  pages.stream('/settings/usage.csv', usage.downloadUsage)
  pages.get('/settings/audit-log', auditLog.showAuditLog)
  pages.stream('/settings/audit-log.jsonl', auditLog.downloadAuditLog)
}

function routeNotifications(pages: UserPages): void {
  pages.get('/settings/notifications', notifications.listRules)
  pages.get('/settings/notifications/new', notifications.showNewRule)
  pages.post('/settings/notifications/new', notifications.createRule)
  pages.get('/settings/notifications/:id', notifications.showRule)
  pages.get('/settings/notifications/:id/edit', notifications.showRuleChange)
  pages.post('/settings/notifications/:id/edit', notifications.changeRule)
  pages.post('/settings/notifications/:id/state', notifications.setRuleEnabled)
  pages.post('/settings/notifications/:id/test', notifications.testRule)
  pages.get('/settings/notifications/:id/delete', notifications.confirmRuleDeletion)
  pages.post('/settings/notifications/:id/delete', notifications.deleteRule)
}

function routeProfile(pages: UserPages, deps: Dependencies): void {
  pages.get('/profile', profile.showProfile)
  const limitPasswordGuesses = passwordLimit(deps)
  pages.post('/profile', profile.changeProfile, limitPasswordGuesses)
  pages.post('/profile/password', profile.changePassword, limitPasswordGuesses)
  pages.post('/profile/sessions/:id/end', sessions.endSession)
  pages.post('/profile/sign-out-everywhere', sessions.signOutEverywhere)
  pages.get('/profile/two-factor', twoFactor.showTwoFactor)
  pages.get(setUpPath, twoFactor.showSetUp)
  pages.post(setUpPath, twoFactor.setUp, limitPasswordGuesses)
  pages.post('/profile/two-factor/recovery-codes', twoFactor.replaceRecoveryCodes, limitPasswordGuesses)
  pages.post('/profile/two-factor/remove', twoFactor.remove, limitPasswordGuesses)
}
