/** What is stored encrypted of a run, and the names of the rows that it opens in. */
import { encryptedColumn } from '../../storage/encrypted-columns.ts'

/** Names the row that a run's secrets belong to, so that they open nowhere else. */
export function secretsAad(accountId: string, runId: string): string {
  return `${accountId}/runs/${runId}/secrets`
}

export function stepAad(runId: string, name: string): string {
  return `runs/${runId}/steps/${name}`
}

export const encryptedInRuns = [
  encryptedColumn({
    table: 'runs',
    key: ['id'],
    column: 'secrets',
    aadColumns: { accountId: 'account_id', runId: 'id' },
    aad: ({ accountId, runId }) => secretsAad(accountId, runId),
  }),
  encryptedColumn({
    table: 'run_steps',
    key: ['run_id', 'name'],
    column: 'value',
    aadColumns: { runId: 'run_id', name: 'name' },
    aad: ({ runId, name }) => stepAad(runId, name),
  }),
]
