/** Browser contexts for tests of the domain. */
import type { PersistContext, Run } from '../../src/domain/runs/run.ts'
import { type DomainOptions, newAccount, openDomain, queueRun, type Test, workflow } from './domain.ts'

export const browserWorkflow = workflow({ id: 'browse', usesBrowser: true })

/** Opens a domain with an account and an empty browser context, and a function that queues runs with it. */
export async function openWithContext(test: Test, options: DomainOptions = {}) {
  const domain = await openDomain(test, { workflows: [browserWorkflow, workflow()], ...options })
  const account = await newAccount(domain)
  const { accountId, principal } = account
  const createContext = async (name?: string) => {
    const context = await domain.browserContexts.create(accountId, name)
    if (!context) throw new Error('No browser context was created.')
    return context.id
  }
  const contextId = await createContext()
  const queue = (
    changes: { id?: string; persist?: PersistContext; priority?: number; expiresInSeconds?: number } = {},
  ) => {
    const { id = contextId, persist = 'onSuccess', ...same } = changes
    return queueRun(domain, principal, {
      workflowId: browserWorkflow.id,
      browserContextId: id,
      persistContext: persist,
      ...same,
    })
  }
  return {
    domain,
    ...account,
    contextId,
    createContext,
    queue,
    context: (id = contextId) => domain.browserContexts.get(accountId, id),
    run: ({ id }: Pick<Run, 'id'>) => domain.runs.get(accountId, id),
  }
}

/** Returns a storage state as JSON, with a cookie and an item of local storage of this value. */
export function createState(value: string, domain = 'shop.example.com'): string {
  const rest = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  const localStorage = [{ name: 'token', value: `stored ${value}` }]
  const origins = [{ origin: `https://${domain}`, localStorage }]
  return JSON.stringify({ cookies: [{ name: 'session', value, domain, ...rest }], origins })
}

/** Like `openWithContext`, with functions that write and read versions, including their rows. */
export async function openWithVersions(test: Test, options: DomainOptions = {}) {
  const opened = await openWithContext(test, options)
  const { domain, accountId, contextId } = opened
  const { contextVersions: versions } = domain
  const rows = () => domain.store.read.query.selectFrom('browser_context_versions').selectAll().execute()
  return {
    ...opened,
    versions,
    rows,
    read: (id = contextId) => versions.read(accountId, id),
    put: (state: string, id = contextId) => versions.replace(accountId, id, state, { apiKeyId: 'a key' }),
  }
}
