/** What a connection to PostgreSQL keeps prepared is bounded by the service's statements, not by who uses it. */
import { expect, test } from 'vitest'
import { claimAll } from '../support/claims.ts'
import { postgres } from '../support/postgres.ts'
import { newAccount, openDomain, queueRun, workflow } from '../support/store.ts'

test('accounts and workflows share the statements by which their runs are queued and claimed', async (test) => {
  const workflows = Array.from({ length: 20 }, (_, index) => workflow({ id: `workflow-${index}` }))
  const domain = await openDomain(test, { kind: postgres, workflows })
  const { principal } = await newAccount(domain)
  for (const { id } of workflows) await queueRun(domain, principal, { workflowId: id })
  expect(await claimAll(domain.queue, domain)).toHaveLength(workflows.length)
  const sql = `SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%' || ? || '%'`
  expect(await domain.store.read.all(sql, [`'${principal.accountId}/`])).toEqual([])
  const fetches = await domain.store.read.all(sql, ['SKIP LOCKED'])
  expect(fetches.length).toBeLessThan(3)
})
