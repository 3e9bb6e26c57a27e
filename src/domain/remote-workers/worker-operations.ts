/** The Execution API's operations of workers outside of the service. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { JsonText } from '../../contract/i-json.ts'
import { invalidRequest, NotPermitted } from '../../contract/problem.ts'
import { inlineBytesMax } from '../../storage/blobs/contents.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { type FileDependencies, fileHeaders, reserveParts } from '../files/file-operations.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import type { LiveCommand } from '../run-api/live-views.ts'
import { readSized } from '../sized.ts'
import type { AttemptLiveViews } from './attempt-live-views.ts'
import type { Refused, RemoteAttempts } from './remote-attempts.ts'
import { type ClaimedRun, isPermitted, type RemoteWorker, type RemoteWorkers } from './remote-workers.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  | 'getDeploymentBundle'
  | 'listWorkers'
  | 'registerWorker'
  | 'deleteWorker'
  | 'claimRuns'
  | 'renewLeases'
  | 'putRunStep'
  | 'appendRunEvents'
  | 'putAttemptArtifact'
  | 'getAttemptBrowserContext'
  | 'getAttemptFile'
  | 'getLiveViews'
  | 'updateLiveView'
  | 'completeAttempt'
  | 'suspendAttempt'
  | 'handBackAttempt'
>

type Schemas = components['schemas']

export interface WorkerDependencies extends FileDependencies {
  remoteWorkers: RemoteWorkers
  remoteAttempts: RemoteAttempts
  attemptLiveViews: AttemptLiveViews
  cursors: Cursors
}

export function workerOperations(dependencies: WorkerDependencies): Operations {
  const { remoteWorkers, remoteAttempts, files, cursors } = dependencies
  return {
    ...liveViewOperations(dependencies),

    async getDeploymentBundle({ principal, path, reserve }) {
      const found = await remoteWorkers.findBundle(principal, path.deploymentId)
      if (!found) return notFound('deployment')
      return { status: 200, bytes: await readSized(reserve, found), mediaType: 'application/octet-stream' }
    },

    async listWorkers({ principal: { accountId }, query }) {
      const workers = await remoteWorkers.list(accountId)
      const page = await cursors.page(
        ['workers', accountId],
        query,
        async (after, limit) => workers.filter((worker) => isAfter(worker, after)).slice(0, limit),
        { positionOf },
      )
      if (!page) return wrongCursor
      const { leaseSeconds } = remoteWorkers
      const data = page.rows.map((worker) => toResponse(worker, leaseSeconds))
      return { status: 200, body: { data, nextCursor: page.nextCursor } }
    },

    async registerWorker(request) {
      const { principal, path, body, signal } = request
      const { workflows = [], deployed = false, browser = false, ...worker } = body
      if (!workflows.every(({ id }) => isPermitted(principal, id))) throw new NotPermitted()
      // New definitions are checked in another process.
      request.unlockProcessing()
      const sent = { ...worker, workflows, deployed, browser }
      const registered = await remoteWorkers.register(principal, path.workerId, sent, signal)
      if (registered.kind === 'busy') {
        const detail = 'Other registrations of this account are being checked. Try again. Nothing was stored.'
        const problem = { kind: 'too-many-concurrent-requests', detail } as const
        return { status: 429, headers: { 'Retry-After': '5' }, problem }
      }
      if (registered.kind === 'invalid') return invalidRequest(registered.errors)
      if (registered.kind === 'conflict')
        return { status: 409, problem: { kind: 'worker-conflict', detail: `${registered.detail} Nothing was stored.` } }
      return { status: 200, body: toResponse(registered.worker, remoteWorkers.leaseSeconds) }
    },

    async deleteWorker({ principal, path }) {
      return (await remoteWorkers.delete(principal, path.workerId)) ? { status: 204 } : notFound('worker')
    },

    async claimRuns(request) {
      const { principal, path, body } = request
      const { countMax, waitSeconds = 0, executing = [] } = body
      if (waitSeconds > 0) request.unlockProcessing()
      const signal = waitSeconds > 0 ? request.whileAuthenticated() : request.signal
      const claimed = await remoteWorkers.claim(principal, path.workerId, { countMax, waitSeconds, executing }, signal)
      if (!claimed) return notFound('worker')
      return claimed.length > 0 ? { status: 200, body: { data: claimed.map(toClaimedRun) } } : { status: 204 }
    },

    async renewLeases({ principal, path, body }) {
      const renewed = await remoteWorkers.renew(principal, path.workerId, body.leases)
      if (!renewed) return notFound('worker')
      return { status: 200, body: { ...renewed, leaseExpiresAt: toTimestamp(renewed.leaseExpiresAt) } }
    },

    async putRunStep({ principal, path, body }) {
      return toDone(await remoteAttempts.putStep(principal, path, path.stepName, body))
    },

    async appendRunEvents({ principal, path, body }) {
      return toDone(await remoteAttempts.report(principal, path, body))
    },

    async putAttemptArtifact(request) {
      const { principal, path, body } = request
      const { mediaType, content: base64, evidence: isEvidence = false } = body
      const content = Buffer.from(base64, 'base64')
      const artifact = { name: path.artifactName, mediaType, content, isEvidence }
      // It may be written over a network.
      if (content.length > inlineBytesMax) request.unlockProcessing()
      return toDone(await remoteAttempts.putArtifact(principal, path, artifact))
    },

    async getAttemptBrowserContext({ principal, path, reserve }) {
      const read = await remoteAttempts.readContext(principal, path, reserve)
      if (read.kind !== 'state') return toProblem(read)
      if (read.state === undefined) return notFound('browser context')
      // It was validated when it was stored.
      return { status: 200, body: new JsonText(read.state) as never }
    },

    async getAttemptFile(request) {
      const found = await remoteAttempts.findFile(request.principal, request.path, request.path.fileId)
      if (found.kind !== 'file') return toProblem(found)
      const { file } = found
      if (!file) return notFound('file')
      await reserveParts(request, file.sizeBytes)
      const mediaType = 'application/octet-stream'
      return { status: 200, headers: fileHeaders(file), stream: files.stream(file), mediaType }
    },

    async completeAttempt({ principal, path, body }) {
      const completed = await remoteAttempts.complete(principal, path, body)
      if (completed.kind !== 'completed') return toProblem(completed)
      return { status: 200, body: { status: completed.status, reason: completed.reason } }
    },

    async suspendAttempt(request) {
      const { waits = [], names, suspend = true, executedSeconds, events } = request.body
      const usesContexts = request.hasScope('browser-contexts:use')
      const options = { waits, names, suspend, usesContexts, executedSeconds, events }
      const result = await remoteAttempts.suspend(request.principal, request.path, options)
      if (result.kind !== 'waits') return toProblem(result)
      const { suspended, ended, refused } = result
      const deadlines = Object.entries(result.deadlines).map(([name, at]) => {
        return { name, deadline: toTimestamp(at), secondsLeft: Math.max(0, at - result.now) / 1000 }
      })
      return { status: 200, body: { suspended, ended, refused, deadlines } }
    },

    async handBackAttempt({ principal, path, body }) {
      return toDone(await remoteAttempts.handBack(principal, path, body?.message))
    },
  }
}

function liveViewOperations({
  attemptLiveViews,
}: WorkerDependencies): Pick<Operations, 'getLiveViews' | 'updateLiveView'> {
  return {
    async getLiveViews(request) {
      const { principal, path, query } = request
      const { except = [], waitSeconds = 0 } = query
      const signal = waitSeconds > 0 ? request.whileAuthenticated() : request.signal
      const found = await attemptLiveViews.wait(principal, path, { except, waitSeconds }, signal)
      if (found.kind !== 'liveViews') return toProblem(found)
      return { status: 200, body: { liveViews: found.ids.map((id) => ({ id })) } }
    },

    async updateLiveView(request) {
      const { principal, path, body } = request
      request.unlockProcessing()
      const signal = body.waitForCommands ? request.whileAuthenticated() : request.signal
      const updated = await attemptLiveViews.update(principal, path, path.viewId, body, signal)
      if (updated.kind !== 'liveView') return toProblem(updated)
      const { state, present, commands } = updated
      return { status: 200, body: { state, present, commands: commands.map(toCommand) } }
    },
  }
}

function toCommand(command: LiveCommand): Schemas['LiveViewCommand'] {
  const { type, by } = command
  return { type, by, ...(type === 'input' && { inputs: [...command.inputs] }) }
}

/** In the order of the list. The worker of a cursor may have gone since. */
const positionOf = ({ startedAt, id }: RemoteWorker) => `${startedAt}_${id}`

function isAfter({ startedAt, id }: RemoteWorker, position: string | undefined): boolean {
  if (position === undefined) return true
  const [time, lastId = ''] = position.split('_')
  return startedAt === Number(time) ? id > lastId : startedAt > Number(time)
}

function toDone(refused: Refused | undefined) {
  return refused ? toProblem(refused) : { status: 204 as const }
}

const lost = {
  leaseLost: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
  otherResult: 'The step has another result. Nothing was stored.',
}

function toProblem(refused: Refused) {
  if (refused.kind === 'noSuchRun') return notFound('run')
  if (refused.kind === 'invalid') return invalidRequest(refused.errors)
  return { status: 409, problem: { kind: 'lease-lost', detail: lost[refused.kind] } } as const
}

function toResponse(worker: RemoteWorker, leaseSeconds: number): Schemas['RegisteredWorker'] {
  const { id, name, language, version, host, slots: capacity, startedAt, seenAt, workflows } = worker
  return {
    ...{ id, name, language, version, host, capacity, leaseSeconds },
    startedAt: toTimestamp(startedAt),
    lastSeenAt: toTimestamp(seenAt),
    ...{ deployed: worker.deployed, browser: worker.browser },
    workflows: workflows.map((each) => ({ id: each.id, version: each.version })),
  }
}

function toClaimedRun(claimed: ClaimedRun) {
  const { claim, version, variables, secrets, steps, timeLimitSeconds, leaseExpiresAt, isOwn } = claimed
  const { runId, workflowId, attempt, number, hasWaits, parentRunId, traceContext: traceparent } = claim
  const { browserContextId, persistContext } = claim
  const { secrets: accountSecrets, settings } = claimed.declared
  const files = claimed.files.map(({ sizeBytes: bytes, ...file }) => ({ ...file, bytes }))
  return {
    ...{ runId, workflowId, workflowVersion: version, attempt, number, variableData: variables, secrets, files },
    deploymentId: isOwn ? null : claim.deploymentId,
    ...{ accountSecrets: { ...accountSecrets }, settings: { ...settings } },
    ...{ steps, hasWaits, timeLimitSeconds, parentRunId, traceparent },
    browserContext: browserContextId === null ? null : { id: browserContextId, persistContext },
    leaseExpiresAt: toTimestamp(leaseExpiresAt),
  }
}
