/** Browser contexts for tests of the domain: one in an account, runs that want it, and states to put into it. */
import type { PersistContext, Run } from '../../src/domain/runs/run.ts'
import { type DomainOptions, newAccount, openDomain, queueRun, type Test, workflow } from './domain.ts'

export const browserWorkflow = workflow({ id: 'browse', usesBrowser: true })

/** A domain with an account that has an empty browser context, and what queues runs with it. */
export async function openWithContext(test: Test, options: DomainOptions = {}) {
  const domain = await openDomain(test, { workflows: [browserWorkflow, workflow()], ...options })
  const account = await newAccount(domain)
  const { accountId, principal } = account
  const createContext = async (name?: string) => {
    const context = await domain.browserContexts.create(accountId, name)
    if (!context) throw new Error('The browser context was not made.')
    return context.id
  }
  const contextId = await createContext()
  const queue = (
    changes: { id?: string; persist?: PersistContext; priority?: number; expiresInSeconds?: number } = {},
  ) => {
    const { id = contextId, persist = 'onSuccess', ...same } = changes
    return queueRun(domain, principal, { workflowId: browserWorkflow.id, browserContext: { id, persist }, ...same })
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

/** A storage state as JSON, with one cookie of that value. */
export function createState(value: string, domain = 'shop.example.com'): string {
  const rest = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  const localStorage = [{ name: 'token', value: `stored ${value}` }]
  const origins = [{ origin: `https://${domain}`, localStorage }]
  return JSON.stringify({ cookies: [{ name: 'session', value, domain, ...rest }], origins })
}

/** What browser contexts hold, with what writes versions as a caller and reads them, as they are stored too. */
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
