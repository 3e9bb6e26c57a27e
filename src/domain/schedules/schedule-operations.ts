/** The Execution API's operations on schedules. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import { toMemberErrors, tooManyQueuedRuns } from '../queue/queue-problems.ts'
import { toResponse as toRunResponse } from '../run-api/run-response.ts'
import type { QueueResult } from '../run-api/runs.ts'
import type { Schedule, ScheduleError } from './schedule.ts'
import type { Schedules } from './schedules.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  'listSchedules' | 'createSchedule' | 'getSchedule' | 'updateSchedule' | 'deleteSchedule' | 'triggerSchedule'
>

type Schemas = components['schemas']

const noSchedule = notFound('schedule')

export interface ScheduleDependencies {
  schedules: Schedules
}

export function scheduleOperations({ schedules }: ScheduleDependencies): Operations {
  const hasContext = async ({ accountId }: Principal, scheduleId: string) => {
    const schedule = await schedules.get(accountId, scheduleId)
    return schedule !== undefined && schedule.browserContextId !== null
  }
  return {
    async listSchedules({ principal, query }) {
      const page = await schedules.list(principal.accountId, query)
      if (!page) return wrongCursor
      return { status: 200, body: { data: page.schedules.map(toResponse), nextCursor: page.nextCursor } }
    },

    async createSchedule(request) {
      const { principal, body } = request
      if (body.browserContextId !== undefined) request.requireScope('browser-contexts:use')
      const { variableData: variables, ...given } = body
      const created = await schedules.create(principal.accountId, { ...given, variables }, principal)
      switch (created.kind) {
        case 'created': {
          const headers = { Location: `/v1/execution/schedules/${created.schedule.id}` }
          return { status: 201, headers, body: toResponse(created.schedule) }
        }
        case 'invalid':
          return invalidRequest(created.errors)
        case 'tooManySchedules': {
          const detail = `This account has ${created.schedulesMax} schedules. Delete one to create another. Nothing was stored.`
          return { status: 409, problem: { kind: 'too-many-schedules', detail } }
        }
      }
    },

    async getSchedule({ principal, path }) {
      const schedule = await schedules.get(principal.accountId, path.scheduleId)
      return schedule ? { status: 200, body: toResponse(schedule) } : noSchedule
    },

    async updateSchedule(request) {
      const { principal, path, body } = request
      // `null` removes the context, which needs no scope of it.
      const usesContext =
        body.browserContextId === undefined && body.variableData !== undefined
          ? await hasContext(principal, path.scheduleId)
          : typeof body.browserContextId === 'string'
      if (usesContext) request.requireScope('browser-contexts:use')
      const { variableData: variables, ...given } = body
      const updated = await schedules.update(principal.accountId, path.scheduleId, { ...given, variables }, principal)
      if (!updated) return noSchedule
      return 'errors' in updated ? invalidRequest(updated.errors) : { status: 200, body: toResponse(updated) }
    },

    async deleteSchedule({ principal, path }) {
      return (await schedules.delete(principal.accountId, path.scheduleId, principal)) ? { status: 204 } : noSchedule
    },

    async triggerSchedule(request) {
      const { principal, path } = request
      if (await hasContext(principal, path.scheduleId)) request.requireScope('browser-contexts:use')
      const queued = await schedules.trigger(principal.accountId, path.scheduleId, principal)
      if (!queued) return noSchedule
      if (queued.kind !== 'queued') return toProblem(queued)
      const headers = { Location: `/v1/execution/runs/${queued.run.id}` }
      return { status: 202, headers, body: toRunResponse(queued.run, principal) }
    },
  }
}

function toProblem(refused: Exclude<QueueResult, { kind: 'queued' }>) {
  switch (refused.kind) {
    case 'tooManyQueuedRuns':
      return tooManyQueuedRuns(refused)
    case 'idempotencyConflict':
    case 'runDeleted':
      throw new Error('A run without an idempotency key was taken for a repeated one.')
    default:
      return doesNotFit(toMemberErrors(refused))
  }
}

function doesNotFit(errors: ScheduleError[]) {
  const detail = 'A run of this schedule would be refused. Change the schedule. Nothing was queued.'
  return { status: 409, problem: { kind: 'schedule-does-not-fit', detail, errors } } as const
}

function toResponse(schedule: Schedule): Schemas['Schedule'] {
  const { variables, nextTimes, lastRun, lastSkipped, createdAt, updatedAt, ...members } = schedule
  return {
    ...members,
    tags: [...members.tags],
    variableData: variables,
    paused: schedule.pausedReason !== null,
    nextRunsAt: nextTimes.map((at) => toTimestamp(at)),
    lastRun: lastRun && { ...lastRun, scheduledFor: toTimestamp(lastRun.scheduledFor) },
    lastSkipped: lastSkipped && { ...lastSkipped, scheduledFor: toTimestamp(lastSkipped.scheduledFor) },
    createdAt: toTimestamp(createdAt),
    updatedAt: toTimestamp(updatedAt),
  }
}
