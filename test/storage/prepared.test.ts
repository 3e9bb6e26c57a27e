/** The number of prepared statements per PostgreSQL connection does not grow with accounts and workflows. */
import { expect, test } from 'vitest'
import { claimAll } from '../support/claims.ts'
import { newAccount, openDomain, queueRun, workflow } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'

test('all accounts and workflows share the prepared statements that queue and claim runs', async (test) => {
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
