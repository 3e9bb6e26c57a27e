/** Rows of runs, for tests that insert many. */
import { v7 as uuid } from 'uuid'
import type { NewRun } from '../../src/domain/queue/enqueue-batcher.ts'

/** A queued run of the workflow `anything`, except for `changes`. */
export function newRunRow(accountId: string, changes: Partial<NewRun> = {}): NewRun {
  return {
    id: uuid(),
    account_id: accountId,
    api_key_id: null,
    user_id: null,
    workflow_id: 'anything',
    workflow_version: '1.0.0',
    status: 'queued',
    priority: 0,
    variables: '{}',
    secrets: null,
    created_at: Date.now(),
    delayed: 0,
    available_at: null,
    expires_at: null,
    browser_context_id: null,
    persist_context: null,
    waiting_for: '',
    trace_context: null,
    deployment_id: null,
    tags: null,
    concurrency_group: null,
    schedule_id: null,
    scheduled_for: null,
    rerun_of: null,
    parent_run_id: null,
    ...changes,
  }
}

/** For tests that watch a transaction's statements. */
export function sqlText(statement: { sql: string } | string): string {
  return typeof statement === 'string' ? statement : statement.sql
}
