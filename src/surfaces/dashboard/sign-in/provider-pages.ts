/** Signing in and out by the identity provider. */
import type { CookieOptions, Request, Response } from 'express'
import type { ProviderIdentity, ProviderRefusal } from '../../../domain/accounts/provider-members.ts'
import { describeConnectionFailure } from '../../../storage/error-causes.ts'
import type { Dependencies } from '../dependencies.ts'
import { html, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { PageNotFound } from '../page-handler.ts'
import { type PublicHandler, redirect, sendHtml } from '../page-routes.ts'
import { recordRefusal } from './attempt-limits.ts'
import { nextPath, passFirstFactor } from './code-page.ts'
import { flowMinutes, type IdentityProvider, ProviderSignInError } from './identity-provider.ts'

const callbackPath = '/sign-in/provider/callback'

export const beginProviderSignIn: PublicHandler = async (request, response, deps) => {
  const provider = requireProvider(deps)
  try {
    const { url, flow } = await provider.begin(redirectUri(deps), nextPath(queryOf(request)))
    const { name, options } = flowCookie(deps)
    response.cookie(name, flow, { ...options, maxAge: flowMinutes * 60_000 })
    redirect(response, url.href)
  } catch (error) {
    await sendFailure(request, response, deps, provider, error)
  }
}

export const completeProviderSignIn: PublicHandler = async (request, response, deps) => {
  const provider = requireProvider(deps)
  const { name, options } = flowCookie(deps)
  try {
    const flow = readCookie(request, name)
    // The state is for one use.
    response.clearCookie(name, options)
    const callback = new URL(redirectUri(deps))
    callback.search = queryOf(request).toString()
    const { identity, role, next } = await provider.complete(callback, flow)
    const user = await deps.providerMembers.signIn(provider.accountId, identity, role)
    if (typeof user === 'string') return await sendRefusal(request, response, deps, user, identity)
    const form = new URLSearchParams({ next })
    await passFirstFactor(request, response, deps, { user, how: 'provider', byLink: false }, nextPath(form))
  } catch (error) {
    await sendFailure(request, response, deps, provider, error)
  }
}

/** Leads to the provider's page that signs out there. */
export const signOutOfProvider: PublicHandler = async (request, response, deps) => {
  const provider = requireProvider(deps)
  // A link must not sign out; the button on the pages does, and then leads here.
  if (request.session.stored) return redirect(response, '/profile')
  try {
    const url = await provider.endSessionUrl(`${deps.addresses().dashboardUrl}/sign-in`)
    if (url) return redirect(response, url.href)
    const body = html`<h1>Sign out of ${provider.name}</h1>
      <p>You are signed out of execution-service. ${provider.name} offers no sign-out to other services: sign out there.</p>`
    await sendHtml(response, 200, renderPlainPage('Sign out', body))
  } catch (error) {
    await sendFailure(request, response, deps, provider, error)
  }
}

function requireProvider({ identityProvider }: Dependencies): IdentityProvider {
  if (!identityProvider) throw new PageNotFound('No identity provider is configured.')
  return identityProvider
}

function redirectUri({ addresses }: Dependencies): string {
  return `${addresses().dashboardUrl}${callbackPath}`
}

function queryOf({ originalUrl }: Request): URLSearchParams {
  return new URLSearchParams(originalUrl.split('?')[1])
}

/** `Lax`, since the provider's page leads back. */
function flowCookie({ publicUrl, port }: Dependencies): { name: string; options: CookieOptions } {
  const secure = publicUrl?.startsWith('https:') ?? false
  const name = secure ? '__Host-sign-in' : `execution-service-sign-in-${port}`
  return { name, options: { httpOnly: true, sameSite: 'lax', path: '/', secure } }
}

function readCookie({ headers }: Request, name: string): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}

const failures: Record<ProviderSignInError['reason'], { status: number; message(name: string): string }> = {
  expired: {
    status: 400,
    message: () =>
      `This sign-in was begun in another browser or window, was completed before, or took more than ${flowMinutes} minutes.`,
  },
  denied: { status: 401, message: (name) => `You were not signed in: ${name} refused, or you cancelled.` },
  unavailable: { status: 503, message: (name) => `You were not signed in: ${name} cannot be reached now.` },
  invalid: {
    status: 502,
    message: (name) =>
      `You were not signed in: the response of ${name} was not valid. The operator of this service finds the reason in its log.`,
  },
}

async function sendFailure(
  request: Request,
  response: Response,
  deps: Dependencies,
  { name }: IdentityProvider,
  error: unknown,
): Promise<void> {
  if (!(error instanceof ProviderSignInError)) throw error
  const { status, message } = failures[error.reason]
  recordRefusal(deps, 'sign-in by the identity provider refused', request.ip)
  // Not the whole error, which may have a token.
  const { code, error: oauthError, message: cause } = Object(error.cause) as Record<string, unknown>
  const connection = describeConnectionFailure('The identity provider', error)
  deps.log.warn(
    { reason: error.reason, code, oauthError, cause, connection },
    'sign-in by the identity provider failed',
  )
  await sendNotSignedIn(response, status, message(name))
}

const refusals: Record<ProviderRefusal, { status: number; message(name: string): string }> = {
  noRole: {
    status: 403,
    message: (name) => `None of your groups at ${name} has a role here. Ask an admin of the account for access.`,
  },
  removed: {
    status: 403,
    message: () => 'You were removed from this account. An admin can let you join again under Settings, Members.',
  },
  otherAccount: {
    status: 403,
    message: (name) => `You belong to another account than the one that ${name} signs in to. Ask the operator.`,
  },
}

async function sendRefusal(
  request: Request,
  response: Response,
  deps: Dependencies,
  refusal: ProviderRefusal,
  identity: ProviderIdentity,
): Promise<void> {
  const known = await deps.providerMembers.find(identity)
  recordRefusal(deps, 'sign-in by the identity provider refused', request.ip, known, 'user.signInRefused')
  const { status, message } = refusals[refusal]
  await sendNotSignedIn(response, status, message(requireProvider(deps).name))
}

async function sendNotSignedIn(response: Response, status: number, message: string): Promise<void> {
  const title = 'You are not signed in'
  const body = html`<h1>${title}</h1> ${notice('warning', message)} <p><a href="/sign-in">Sign in again</a></p>`
  await sendHtml(response, status, renderPlainPage(title, body))
}
