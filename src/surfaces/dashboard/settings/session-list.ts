/** Lists the user's sessions, with a button to end each. */
import type { Session } from '../../../domain/accounts/sessions.ts'
import type { Dependencies } from '../dependencies.ts'
import { time } from '../format.ts'
import { badge, type Html, html, table } from '../html.ts'
import { orNotFound, type PageHandler, type PageRequest } from '../page-handler.ts'

export const endSession: PageHandler = async ({ user, params, session }, { sessions }) => {
  const id = params.id ?? ''
  orNotFound(await sessions.endById(user, id))
  return { location: id === session.id ? '/sign-in?done=signedOut' : '/profile?done=ended' }
}

export const signOutEverywhere: PageHandler = async ({ user, form }, { sessions }) => {
  await sessions.endAll(user, { apiKeys: form.has('apiKeys') })
  return { location: '/sign-in?done=signedOutEverywhere' }
}

export async function renderSessions({ user, session }: PageRequest, { sessions }: Dependencies): Promise<Html> {
  const list = await sessions.list(user.id)
  const rows = await Promise.all(list.map((each) => toRow(each, each.id === session.id)))
  return html`<section id="sessions">
    <h2>Sessions</h2>
    <p class="muted">Browsers that are signed in as you. End those that you do not recognize, and change your password.</p>
    ${table(['Browser', 'Address', 'Signed in', 'Last used', ''], rows, 'Sessions')}
    <form method="post" action="/profile/sign-out-everywhere">
      <p class="muted">This also ends sign-in links and sign-ins that were begun.</p>
      <label class="check"><input type="checkbox" name="apiKeys" /> Delete my API keys too</label>
      <button class="secondary">Sign out everywhere</button>
    </form>
  </section>`
}

async function toRow({ id, userAgent, address, createdAt, lastUsedAt }: Session, isThis: boolean) {
  const browser = await describeBrowser(userAgent)
  const action = html`<form method="post" action="/profile/sessions/${id}/end">
    <button class="link danger" aria-label="End the session of ${browser} at ${address}">End</button>
  </form>`
  return [
    html`<strong>${browser}</strong>`,
    address,
    time(createdAt),
    isThis ? badge('good', 'This session') : time(lastUsedAt),
    html`<span class="row-actions">${action}</span>`,
  ]
}

/** For example `Firefox on Linux`. */
async function describeBrowser(userAgent: string): Promise<string> {
  // Loaded at first use: 0.4 MB.
  const { default: bowser } = await import('bowser')
  if (userAgent === '') return 'Unknown browser'
  const { browser, os } = bowser.parse(userAgent)
  if (!browser.name) return userAgent.split(/[\s/]/, 1)[0] || 'Unknown browser'
  return os.name ? `${browser.name} on ${os.name}` : browser.name
}
