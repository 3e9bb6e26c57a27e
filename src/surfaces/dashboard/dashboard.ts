/** The dashboard: a list of its pages and of what can be done on them. */
import express, { type Express } from 'express'
import { stateBytesMax } from '../../domain/browser-contexts/storage-state.ts'
import * as apiKeys from './api-keys/api-keys.ts'
import { assetRouter } from './assets.ts'
import { linkLimit, passwordLimit } from './attempt-limits.ts'
import * as browserContexts from './browser-contexts/browser-contexts.ts'
import { fileField } from './browser-contexts/context-view.ts'
import type { Parts } from './dependencies.ts'
import * as overview from './overview/overview.ts'
import * as runArtifacts from './runs/artifacts.ts'
import * as runs from './runs/runs.ts'
import * as runStreams from './runs/streams.ts'
import { failures, notFound, openPages, protect, requestId, signedInPages } from './serve.ts'
import * as account from './settings/account.ts'
import * as auditLog from './settings/audit-log.ts'
import * as members from './settings/members.ts'
import * as profile from './settings/profile.ts'
import * as links from './sign-in/links.ts'
import * as signIn from './sign-in/sign-in.ts'
import { ofOwners } from './visit.ts'
import * as workflows from './workflows/workflows.ts'

export function dashboardApp(parts: Parts): Express {
  const app = express().disable('x-powered-by').disable('etag').enable('strict routing')
  app.set('trust proxy', parts.proxyHops)
  if (parts.before) app.use(parts.before)
  app.use(assetRouter())
  app.use(requestId(), parts.docs)
  app.use(...protect(parts))

  const open = openPages(app)
  open.get('/sign-in', signIn.show())
  open.post('/sign-in', ...signIn.limits(parts), signIn.submit(parts))
  open.post('/sign-out', signIn.leave())
  open.get('/links/:token', links.show(parts))
  open.post('/links/:token', linkLimit(parts.attempts), links.submit(parts))

  const pages = signedInPages(app, parts)
  pages.get('/', overview.show(parts))

  pages.get('/runs', runs.list(parts))
  pages.stream('/runs/changes', runStreams.allChanges(parts))
  pages.get('/runs/:id', runs.show(parts))
  pages.stream('/runs/:id/changes', runStreams.runChanges(parts))
  pages.stream('/runs/:id/artifacts/:name', runArtifacts.download(parts))
  pages.get('/runs/:id/cancel', runs.cancel(parts))
  pages.post('/runs/:id/cancel', runs.submitCancellation(parts))

  pages.get('/workflows', workflows.list(parts))
  pages.get('/workflows/:id', workflows.show(parts))
  pages.post('/workflows/:id', workflows.queue(parts))

  pages.get('/browser-contexts', browserContexts.list(parts))
  pages.get('/browser-contexts/new', browserContexts.create())
  pages.post('/browser-contexts/new', browserContexts.submitNew(parts))
  pages.get('/browser-contexts/:id', browserContexts.show(parts))
  pages.upload('/browser-contexts/:id', fileField, stateBytesMax, browserContexts.upload(parts))
  pages.get('/browser-contexts/:id/rename', browserContexts.rename(parts))
  pages.post('/browser-contexts/:id/rename', browserContexts.submitName(parts))
  pages.get('/browser-contexts/:id/delete', browserContexts.remove(parts))
  pages.post('/browser-contexts/:id/delete', browserContexts.submitDeletion(parts))
  pages.get('/browser-contexts/:id/versions/:version/restore', browserContexts.restore(parts))
  pages.post('/browser-contexts/:id/versions/:version/restore', browserContexts.submitRestoration(parts))

  pages.get('/api-keys', apiKeys.list(parts))
  pages.get('/api-keys/new', apiKeys.create(parts))
  pages.post('/api-keys/new', apiKeys.submitNew(parts))
  pages.get('/api-keys/:id/rename', apiKeys.rename(parts))
  pages.post('/api-keys/:id/rename', apiKeys.submitName(parts))
  pages.get('/api-keys/:id/rotate', apiKeys.rotate(parts))
  pages.post('/api-keys/:id/rotate', apiKeys.submitRotation(parts))
  pages.get('/api-keys/:id/delete', apiKeys.remove(parts))
  pages.post('/api-keys/:id/delete', apiKeys.submitDeletion(parts))

  pages.get('/settings', account.show(parts))
  pages.post('/settings', ofOwners(account.submit(parts)))
  pages.get('/settings/members', members.list(parts))
  pages.get('/settings/members/invite', ofOwners(members.invite()))
  pages.post('/settings/members/invite', ofOwners(members.submitInvitation(parts)))
  pages.post('/settings/members/invitations/:id/withdraw', ofOwners(members.withdraw(parts)))
  pages.post('/settings/members/:id/role', ofOwners(members.submitRole(parts)))
  pages.post('/settings/members/:id/sign-in-link', ofOwners(members.makeSignInLink(parts)))
  pages.get('/settings/members/:id/remove', ofOwners(members.remove(parts)))
  pages.post('/settings/members/:id/remove', ofOwners(members.submitRemoval(parts)))
  pages.get('/settings/audit-log', ofOwners(auditLog.list(parts)))
  pages.stream('/settings/audit-log.jsonl', ofOwners(auditLog.download(parts)))

  pages.get('/profile', profile.show())
  const guesses = passwordLimit(parts.attempts)
  pages.post('/profile', profile.submit(parts), guesses)
  pages.post('/profile/password', profile.submitPassword(parts), guesses)

  app.use(notFound(parts))
  app.use(failures(parts))
  return app
}
