/** Who has queued a run, in a word: the holder's name for the API key, or the user who did it here. */
import type { Run } from '../../../domain/runs/run.ts'
import type { Parts } from '../dependencies.ts'
import { type Html, html } from '../html.ts'

export type QueuerOf = (run: Pick<Run, 'apiKeyId' | 'userId'>) => Html

export async function queuersOf({ apiKeys, users }: Parts, accountId: string): Promise<QueuerOf> {
  const [keys, userNames] = await Promise.all([apiKeys.list(accountId), users.names(accountId)])
  const keyNames = new Map(keys.map(({ id, name }) => [id, name]))
  return ({ apiKeyId, userId }) => {
    if (userId !== null) return html`${userNames.get(userId) ?? html`<span class="muted">a removed user</span>`}`
    const name = keyNames.get(apiKeyId ?? '')
    return name === undefined
      ? html`<span class="muted">a deleted key</span>`
      : html`<span><span class="muted">key</span> ${name}</span>`
  }
}
