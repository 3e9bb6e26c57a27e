/** Pages of the dashboard about the sign-in of a browser context, for screenshots and accessibility checks. */
import type { Page } from 'playwright-core'
import type { Store } from '../../src/storage/store.ts'
import type { ContextSignInEntriesTable, SignInStatus } from '../../src/storage/tables/tables.ts'
import type { ShownPage } from './dashboard-pages.ts'

/** Ids of a run that has failed, and of one that has not ended. */
interface ShownRuns {
  failed: string
  running: string
  succeeded: string
}

const minute = 60_000

/** Sets a sign-in of the browser context, and returns the pages that show it. */
export async function signInPages(
  { withStore }: { withStore<Result>(use: (store: Store) => Promise<Result>): Promise<Result> },
  page: Page,
  contextId: string,
  runs: ShownRuns,
): Promise<ShownPage[]> {
  const path = `/browser-contexts/${contextId}`
  await page.goto(`${path}/sign-in?workflowId=shop-sign-in`)
  await page.getByLabel('url').fill('https://shop.example/')
  await page.getByLabel('userName').fill('ada')
  await page.getByLabel('password').fill('not the password of Ada')
  await page.getByLabel('TOTP seed').fill('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP')
  await page.getByLabel('Check every').fill('3600')
  await page.getByRole('button', { name: 'Set up sign-in' }).click()
  await page.getByText('Sign-in saved.').waitFor()
  const change = (status: SignInStatus) => withStore((store) => writeHistory(store, contextId, runs, status))
  const at = (name: string, status: SignInStatus, path: string): ShownPage => ({
    name,
    open: async (shown) => {
      await change(status)
      await shown.goto(path)
    },
  })
  await change('signedIn')
  return [
    at('browser-context-sign-in-unknown', 'unknown', path),
    at('browser-context-signing-in', 'signingIn', path),
    at('browser-context-signed-in', 'signedIn', path),
    at('browser-context-sign-in', 'signedIn', `${path}/sign-in`),
    at('browser-context-sign-in-delete', 'signedIn', `${path}/sign-in/delete`),
    at('browser-context-needs-sign-in', 'needsSignIn', path),
    at('browser-contexts-needs-sign-in', 'needsSignIn', '/browser-contexts'),
    at('overview-needs-sign-in', 'needsSignIn', '/'),
    at('browser-context-by-hand', 'signedIn', `${path}/sign-in/by-hand`),
  ]
}

/** Checks and sign-ins of the last hours; the last one has failed if a person is needed, signs in, or is one by hand. */
function writeHistory(store: Store, contextId: string, runs: ShownRuns, status: SignInStatus): Promise<void> {
  const isNeeded = status === 'needsSignIn'
  const isUnknown = status === 'unknown'
  const isSigningIn = status === 'signingIn'
  const now = Date.now()
  const error = JSON.stringify({ name: 'Error', message: 'The shop asks for a person: sign in by hand.' })
  const ada = JSON.stringify({ kind: 'user', id: null, name: 'Ada Lovelace' })
  const entry = (
    name: string,
    minutesAgo: number,
    members: Partial<ContextSignInEntriesTable>,
  ): ContextSignInEntriesTable => ({
    ...{ id: `${contextId}-${name}`, browser_context_id: contextId, run_id: `${contextId}-${name}` },
    ...{ kind: 'signIn', cause: 'signedOut', caused_by_run_id: null, actor: null, outcome: 'signedIn', version: null },
    ...{ started_at: now - minutesAgo * minute, ended_at: now - minutesAgo * minute + 4200, error: null, ...members },
  })
  const last = isNeeded
    ? entry('5', 5, { run_id: runs.failed, caused_by_run_id: runs.succeeded, outcome: 'failed', error })
    : entry('5', 1, {
        run_id: runs.running,
        ...(isSigningIn ? { caused_by_run_id: runs.succeeded } : { kind: 'byHand', cause: 'requested', actor: ada }),
        ...{ outcome: null, ended_at: null },
      })
  const all = [
    entry('1', 190, { cause: 'requested', actor: ada, version: 1 }),
    entry('2', 130, { kind: 'check', cause: 'checkDue' }),
    entry('3', 70, { kind: 'check', cause: 'checkDue', outcome: 'signedOut' }),
    entry('4', 69, { cause: 'checkDue', version: 2 }),
    last,
  ]
  return store.write(async ({ query }) => {
    await query.deleteFrom('context_sign_in_entries').where('browser_context_id', '=', contextId).execute()
    for (const each of isUnknown ? [] : all) await query.insertInto('context_sign_in_entries').values(each).execute()
    const state = {
      status,
      run_id: isSigningIn ? runs.running : null,
      signed_in_at: isUnknown ? null : now - 69 * minute,
      checked_at: isUnknown ? null : now - 70 * minute,
      next_check_at: isNeeded || isSigningIn ? null : now + 60 * minute,
      needs_sign_in_since: isNeeded ? now - 5 * minute : null,
      error: isNeeded ? error : null,
    }
    const signIns = query.updateTable('context_sign_ins').set(state)
    await signIns.where('browser_context_id', '=', contextId).execute()
  })
}
