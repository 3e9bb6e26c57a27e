/** The terms by which lists find runs, as rows of `run_terms`: tags, and words of errors. */
import { statement, type Value } from '../store.ts'
import type { InsertedRun } from './run-statements.ts'

export const termColumns = { account_id: 'text', term: 'text', scope: 'text', status: 'text', run_id: 'text' }
export const insertTermsSql = `INSERT INTO run_terms (${Object.keys(termColumns)})`
export const insertTerm = statement(`${insertTermsSql} VALUES (?, ?, ?, ?, ?)`)

export const tagTerm = (tag: string) => `tag:${tag}`
export const errorTerm = (word: string) => `error:${word}`

type OfTerm = Pick<InsertedRun, 'id' | 'account_id' | 'workflow_id' | 'status'>

/** Two rows: for lists of the account, and of the workflow. */
export function termRows({ id, account_id, workflow_id, status }: OfTerm, term: string): Value[][] {
  return ['', workflow_id].map((scope) => [account_id, term, scope, status, id])
}
