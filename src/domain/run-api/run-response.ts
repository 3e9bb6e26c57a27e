/** The run that responses contain. */

import type { components } from '../../../generated/execution.v1/types.ts'
import { JsonText } from '../../contract/i-json.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { toTimestamp } from '../problems.ts'
import type { Artifact } from '../runs/artifact.ts'
import type { Run } from '../runs/run.ts'

type RunResponse = components['schemas']['Run']

/** For shorter texts, parsing and formatting cost less than inserting them into the response. */
const insertedLengthMin = 512

/** The value of a JSON text; a long text becomes part of the response as it is. */
const asSent = (json: string): never =>
  (json.length < insertedLengthMin ? JSON.parse(json) : new JsonText(json)) as never

/** Each member is written out: with a rest and a spread, validating and formatting the response took 1.3 times as long. */
export function toResponse(run: Run, { environment }: Pick<Principal, 'environment'>): RunResponse {
  const response: RunResponse = {
    id: run.id,
    workflowId: run.workflowId,
    workflowVersion: run.workflowVersion,
    deploymentId: run.deploymentId,
    status: run.status,
    reason: run.reason,
    waitingFor: run.waitingFor,
    waitingForDetail: run.waitingForDetail,
    cancelRequested: run.cancelRequested,
    priority: run.priority,
    tags: [...run.tags],
    concurrencyKey: run.concurrencyKey,
    apiKeyId: run.apiKeyId,
    attempts: run.attempts,
    variableData: asSent(run.json.variables),
    output: asSent(run.json.output),
    error: run.error,
    progress: run.progress,
    browserContextId: run.browserContextId,
    persistContext: run.persistContext,
    scheduleId: run.scheduleId,
    scheduledFor: toTimestamp(run.scheduledFor),
    rerunOf: run.rerunOf,
    parentRunId: run.parentRunId,
    artifacts: run.artifacts.filter(({ kind }) => kind === 'workflow').map(toFile),
    createdAt: toTimestamp(run.createdAt),
    availableAt: toTimestamp(run.availableAt),
    expiresAt: toTimestamp(run.expiresAt),
    startedAt: toTimestamp(run.startedAt),
    finishedAt: toTimestamp(run.finishedAt),
  }
  if (environment !== undefined) response.environment = environment
  const evidence = run.artifacts.filter(({ kind }) => kind === 'evidence')
  if (evidence.length > 0) response.evidence = evidence.map((file) => ({ ...toFile(file), attempt: file.attempt }))
  if (run.queuePosition !== undefined) response.queuePosition = run.queuePosition
  if (run.attemptHistory) {
    response.attemptHistory = run.attemptHistory.map(({ startedAt, finishedAt, ...attempt }) => ({
      ...attempt,
      startedAt: toTimestamp(startedAt),
      finishedAt: toTimestamp(finishedAt),
    }))
  }
  return response
}

function toFile({ name, mediaType, sizeBytes, createdAt, expiresAt }: Artifact) {
  return {
    name,
    mediaType,
    sizeBytes,
    createdAt: toTimestamp(createdAt),
    expiresAt: toTimestamp(expiresAt),
  }
}
