/** Steps of a run as a worker stores them, without a worker. */
import { readConfig } from '../../src/config/config.ts'
import { openKeyRing } from '../../src/domain/installation.ts'
import { stepAad } from '../../src/domain/runs/run.ts'
import { Encryption } from '../../src/storage/encryption.ts'
import type { TestService } from './service.ts'

/** Stores these steps as finished, with their events. The result of each is its name. */
export async function insertSteps({ change }: TestService, runId: string, names: readonly string[]): Promise<void> {
  const encryption = new Encryption(await openKeyRing(readConfig(process.env)))
  for (const [index, name] of names.entries()) {
    const value = encryption.encrypt(JSON.stringify(name), stepAad(runId, name))
    const step = 'INSERT INTO run_steps (run_id, name, value, position) VALUES (?, ?, ?, ?)'
    await change(step, runId, name, value, index + 1)
    await appendEvent({ change }, runId, 'step', { name, state: 'finished' })
  }
}

/** Ends a queued run as failed in a step. */
export async function failInStep({ change }: Pick<TestService, 'change'>, runId: string, step: string): Promise<void> {
  await appendEvent({ change }, runId, 'step', { name: step, state: 'started' })
  const error = { name: 'Error', message: 'The server did not respond.' }
  const data = { status: 'failed', attempt: 1, reason: 'workflowFailed', error: { ...error, stack: null, step } }
  const sequence = await appendEvent({ change }, runId, 'status', data)
  const now = Date.now()
  const failed = `UPDATE runs SET status = 'failed', reason = 'workflowFailed', attempts = 1, failures = 1, error = ?,
    started_at = ?, attempt_started_at = ?, finished_at = ?, attempt_ends = ? WHERE id = ?`
  await change(failed, JSON.stringify(error), now, now, now, JSON.stringify([[now, sequence]]), runId)
}

let lastSequence = 1000

/** Sequence numbers of these events are unique, which is enough to find one. */
async function appendEvent({ change }: Pick<TestService, 'change'>, runId: string, type: string, data: object) {
  lastSequence += 1
  const event = 'INSERT INTO run_events (run_id, sequence, at, type, data) VALUES (?, ?, ?, ?, ?)'
  await change(event, runId, lastSequence, Date.now(), type, JSON.stringify(data))
  return lastSequence
}
