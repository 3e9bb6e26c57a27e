/** The Execution API's operations on runs: requests to domain calls, results to responses. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import { requestedRange } from '../../contract/conditional-requests.ts'
import type { ServerSentEvent } from '../../contract/handler.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { RunTokens } from '../api-keys/run-tokens.ts'
import { notFound, rangeNotSatisfiable, toTimestamp, wrongCursor } from '../problems.ts'
import type { Artifact } from '../runs/artifact.ts'
import type { Run, RunEvent } from '../runs/run.ts'
import { isFinal } from '../runs/run-state.ts'
import { readSized } from '../sized.ts'
import type { RunArtifacts } from './artifacts.ts'
import { findListErrors } from './list-request.ts'
import type { RunFeed } from './run-feed.ts'
import { toResponse } from './run-response.ts'
import type { Runs } from './runs.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  'listRuns' | 'createRunToken' | 'getRun' | 'deleteRun' | 'cancelRun' | 'streamRunEvents' | 'getRunArtifact'
>

/** A comment after this many quiet seconds keeps proxies from closing the connection. */
const heartbeatSeconds = 15

export interface RunDependencies {
  runs: Runs
  artifacts: RunArtifacts
  feed: RunFeed
  runTokens: RunTokens
}

export function runOperations({ runs, artifacts, feed, runTokens }: RunDependencies): Operations {
  return {
    async listRuns({ principal, query, reserve }) {
      const parseTime = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
      const times = { createdAfter: parseTime(query.createdAfter), createdBefore: parseTime(query.createdBefore) }
      const request = { ...query, ...times }
      const errors = findListErrors(request)
      if (errors.length > 0) return invalidRequest(errors)
      const page = await runs.findPage(principal.accountId, request)
      if (!page) return wrongCursor
      const data = (await readSized(reserve, page)).map((run) => toResponse(run, principal))
      return { status: 200, body: { data, nextCursor: page.nextCursor } }
    },

    async createRunToken({ principal, body: { runId, expiresInSeconds } }) {
      const run = await runs.get(principal.accountId, runId)
      if (!run) return notFound('run')
      await runs.recordToken(run, principal.apiKeyId)
      const { token, expiresAt } = runTokens.create(principal, run.id, expiresInSeconds)
      return { status: 201, body: { token, runId: run.id, expiresAt: toTimestamp(expiresAt) } }
    },

    async getRun({ principal, path, reserve }) {
      const found = await runs.measure(principal.accountId, path.runId)
      const run = found && (await readSized(reserve, found))
      return run ? { status: 200, body: toResponse(await runs.withWaiting(run), principal) } : notFound('run')
    },

    async deleteRun({ principal, path }) {
      const deleted = await runs.delete(principal.accountId, path.runId, { apiKeyId: principal.apiKeyId })
      if (!deleted) return notFound('run')
      return deleted === 'deleted' ? { status: 204 } : notFinished(deleted)
    },

    async cancelRun({ principal, path }) {
      const run = await runs.cancel(principal.accountId, path.runId, { apiKeyId: principal.apiKeyId })
      return run ? { status: 200, body: toResponse(run, principal) } : notFound('run')
    },

    async streamRunEvents(request) {
      const { principal, path, header } = request
      const run = await runs.get(principal.accountId, path.runId)
      if (!run) return notFound('run')
      const after = Number(header['Last-Event-ID'] ?? 0)
      if (isFinal(run.status) && !(await feed.hasEventsAfter(run.id, after))) return { status: 204 }
      const events = feed.events(run.id, after, heartbeatSeconds, request.whileAuthenticated())
      return { status: 200, events: toServerSentEvents(events, () => request.stillAuthenticated()) }
    },

    async getRunArtifact(request) {
      const { principal, path, reserve } = request
      const { Range: range, 'If-Range': ifRange } = request.header
      const select = (artifact: Artifact) =>
        requestedRange({ range, ifRange }, { etag: etagOf(artifact), sizeBytes: artifact.sizeBytes })
      const found = await artifacts.find(principal.accountId, path.runId, path.artifactName, select)
      const unlock = () => request.unlockProcessing()
      const artifact = found && (await readSized(reserve, found, unlock))
      return artifact ? toFileResponse(artifact) : notFound('artifact')
    },
  }
}

function notFinished({ status }: Run) {
  const detail = `The run is ${status}. Cancel it and wait for its end, then delete it. Nothing was deleted.`
  return { status: 409, problem: { kind: 'run-not-finished', detail } } as const
}

function toFileResponse(artifact: NonNullable<Awaited<ReturnType<RunArtifacts['read']>>>) {
  const { content: bytes, mediaType, sizeBytes, range: sent } = artifact
  if (sent === 'unsatisfiable') return rangeNotSatisfiable('artifact', sizeBytes)
  const headers = {
    'Content-Disposition': `attachment; filename="${artifact.name}"`,
    'X-Content-Type-Options': 'nosniff' as const,
    'Accept-Ranges': 'bytes' as const,
    ETag: etagOf(artifact),
  }
  if (!sent) return { status: 200 as const, headers, bytes, mediaType }
  const position = { 'Content-Range': `bytes ${sent.first}-${sent.last}/${sizeBytes}` }
  return { status: 206 as const, headers: { ...headers, ...position }, bytes, mediaType }
}

/** The time increases whenever the artifact is replaced. */
function etagOf({ createdAt }: Artifact): string {
  return `"${createdAt.toString(36)}"`
}

/** Checks the API key again before each event. While there is none, the request's signal ends the stream. */
async function* toServerSentEvents(
  events: AsyncIterable<RunEvent | null>,
  stillAuthenticated: () => Promise<boolean>,
): AsyncGenerator<ServerSentEvent> {
  for await (const event of events) {
    if (!(await stillAuthenticated())) return
    yield event && toServerSentEvent(event)
  }
}

const serverSentEvents = new WeakMap<RunEvent, NonNullable<ServerSentEvent>>()

/** Returns one object to all streams that share the read of an event, so that it is formatted once. */
function toServerSentEvent(event: RunEvent): NonNullable<ServerSentEvent> {
  const known = serverSentEvents.get(event)
  if (known) return known
  const { type, sequence, at, data } = event
  const sent = { id: String(sequence), event: type, data: { type, sequence, at: toTimestamp(at), ...data } }
  serverSentEvents.set(event, sent)
  return sent
}
