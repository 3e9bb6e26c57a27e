/** The Execution API's operation on usage. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { toTimestamp } from '../problems.ts'
import { outcomes } from './outcome-counts.ts'
import type { WorkflowUsage } from './run-usage.ts'
import { findRangeErrors, type RunUsage, rowsMax } from './usage-reports.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'getUsage'>

export interface UsageDependencies {
  runUsage: RunUsage
}

export function usageOperations({ runUsage }: UsageDependencies): Operations {
  return {
    async getUsage({ principal, query, preferredType, reserve }) {
      const { per, ...range } = query
      const errors = findRangeErrors(range)
      if (errors.length > 0) return invalidRequest(errors)
      const report = await runUsage.read(principal.accountId, range)
      if (!report) return tooManyRows
      await reserve(report.workflows.length * rowBytes)
      if (preferredType === 'text/csv') return { status: 200, text: toCsv(report.workflows), mediaType: 'text/csv' }
      const { workflows, storage, countedUntil } = report
      const data = workflows.map(toResponse)
      const stored = storage.map(({ day, bytes }) => ({ day, storedBytes: bytes }))
      const body = { ...range, per, countedUntil: toTimestamp(countedUntil), data, storage: stored }
      return { status: 200, body }
    },
  }
}

/** Of a row as JSON. */
const rowBytes = 300

const tooManyRows = invalidRequest([
  { parameter: 'to', detail: `leads to more than ${rowsMax} rows of workflows and days; request fewer days at once` },
])

function toResponse(usage: WorkflowUsage): components['schemas']['WorkflowUsage'] {
  const { day, workflowId, counts: runs, attempts, artifactBytes } = usage
  return { day, workflowId, runs, attempts, ...amountsOf(usage), artifactBytes }
}

/** Both are exact to about a millisecond. */
function amountsOf({ executedMilliseconds, browserMilliseconds }: WorkflowUsage) {
  return {
    executionSeconds: executedMilliseconds / 1000,
    browserMinutes: Math.round(browserMilliseconds / 0.6) / 100_000,
  }
}

const columns = ['day', 'workflowId', ...outcomes, 'attempts', 'executionSeconds', 'browserMinutes', 'artifactBytes']

/** RFC 4180, in pieces without characters that need quotes: ids of workflows have letters, digits, `.`, `_` and `-` only. */
export function toCsv(workflows: readonly WorkflowUsage[]): string {
  const lines = workflows.map((usage) => {
    const { executionSeconds, browserMinutes } = amountsOf(usage)
    const counts = outcomes.map((outcome) => usage.counts[outcome])
    return [
      usage.day,
      usage.workflowId,
      ...counts,
      usage.attempts,
      executionSeconds,
      browserMinutes,
      usage.artifactBytes,
    ]
  })
  return [columns, ...lines].map((line) => `${line.join(',')}\r\n`).join('')
}
