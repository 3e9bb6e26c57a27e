/** "Follow this run": an email to the user when it ends. */
import { followedRunsMax } from '../../../domain/notifications/run-followers.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Dependencies } from '../dependencies.ts'
import { type Html, html, nothing, notice } from '../html.ts'
import { orNotFound, type PageHandler, type PageRequest } from '../page-handler.ts'

/** The button; nothing for a run that has ended, and when the operator has set no mail server. */
export async function renderFollowing(
  run: Run,
  { user }: PageRequest,
  { sendsMail, runFollowers }: Dependencies,
): Promise<Html | ''> {
  if (isFinal(run.status) || !sendsMail) return nothing
  const isFollowing = await runFollowers.isFollowing(run.id, user.id)
  const label = isFollowing ? 'Stop following' : 'Follow this run'
  return html`<form method="post" action="/runs/${run.id}/follow">
    <input type="hidden" name="follow" value="${isFollowing ? 'no' : 'yes'}" />
    <button class="secondary">${label}</button>
  </form>`
}

export function renderFollowNotice(done: string, { user }: PageRequest): Html | '' {
  if (done === 'followed') return notice('good', `You get an email at ${user.email} when this run ends.`)
  if (done === 'unfollowed') return notice('good', 'You get no email when this run ends.')
  if (done === 'tooMany')
    return notice('warning', `You follow ${followedRunsMax} runs that have not ended. Stop following one first.`)
  if (done !== 'noEmail') return nothing
  return notice(
    'warning',
    html`You have no email address, so you cannot follow the run. <a href="/profile">Add one to your profile</a>.`,
  )
}

export const followRun: PageHandler = async ({ account, user, params, form }, { runs, runFollowers, sendsMail }) => {
  const run = orNotFound(await runs.get(account.id, params.id ?? ''))
  const path = `/runs/${run.id}`
  if (form.get('follow') !== 'yes') {
    await runFollowers.unfollow(run.id, user.id)
    return { location: `${path}?done=unfollowed` }
  }
  orNotFound(sendsMail)
  if (user.email === null) return { location: `${path}?done=noEmail` }
  const result = await runFollowers.follow(account.id, run, user.id)
  return { location: result === 'finished' ? path : `${path}?done=${result}` }
}
