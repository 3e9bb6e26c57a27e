/** What `npm run check` requires of the documents. */
import { expect, test } from 'vitest'
import { runContractChecks } from '../../src/tools/contract-checks/main.ts'

test('this checkout passes all contract checks', async () => {
  const reports = await runContractChecks('.')
  expect(reports.flatMap((it) => it.findings).filter((it) => it.severity === 'error')).toEqual([])
  const summary = reports.map((it) => it.summary).join(' ')
  expect(summary).toMatch(/\d+ changes since .* 2\d security rules .*[1-9]\d+ patterns/)
})
