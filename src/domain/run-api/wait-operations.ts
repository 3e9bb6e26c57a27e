/** The Execution API's operations on waits. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import { readSized } from '../sized.ts'
import type { Answered, Wait, Waits } from './waits.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'listWaits' | 'listRunWaits' | 'completeWait' | 'createWaitLink'>

type Schemas = components['schemas']

export interface WaitDependencies {
  waits: Waits
  /** Where people open links: the dashboard's public address. */
  linksUrl: () => string
}

export function waitOperations({ waits, linksUrl }: WaitDependencies): Operations {
  return {
    async listWaits({ principal, query, reserve }) {
      const page = await waits.findPage(principal.accountId, query)
      return page ? toPage(await readSized(reserve, page), page) : wrongCursor
    },

    async listRunWaits({ principal, path, query, reserve }) {
      const page = await waits.findPageOfRun(principal.accountId, path.runId, query)
      if (!page) return notFound('run')
      return page === 'wrongCursor' ? wrongCursor : toPage(await readSized(reserve, page), page)
    },

    async completeWait({ principal, path: { runId, name }, body: { value }, clientAddress }) {
      const by = { apiKeyId: principal.apiKeyId, address: clientAddress }
      const answered = await waits.answer(principal.accountId, runId, name, value, by)
      return 'wait' in answered ? { status: 200, body: toResponse(answered.wait) } : toProblem(answered, name)
    },

    async createWaitLink({ principal, path: { runId, name }, body: { expiresInSeconds } }) {
      const by = { apiKeyId: principal.apiKeyId }
      const created = await waits.createLink(principal.accountId, runId, name, expiresInSeconds, by)
      if ('kind' in created) return toProblem(created, name)
      const url = new URL(`/answer/${created.token}`, linksUrl()).href
      return { status: 201, body: { url, expiresAt: toTimestamp(created.expiresAt) } }
    },
  }
}

function toPage(waits: readonly Wait[], { nextCursor }: { nextCursor: string | null }) {
  return { status: 200 as const, body: { data: waits.map(toResponse), nextCursor } }
}

type Refused = Exclude<Answered, { wait: Wait }>

function toProblem(refused: Refused, name: string) {
  switch (refused.kind) {
    case 'noSuchRun':
      return notFound('run')
    case 'noSuchWait':
      return notFound('wait')
    case 'invalid':
      return invalidRequest(refused.errors.map(({ pointer, detail }) => ({ pointer: `/value${pointer}`, detail })))
    default: {
      const detail = `The wait "${name}" ${reasons[refused.kind]} Nothing was stored.`
      return { status: 409, problem: { kind: 'wait-ended', detail } } as const
    }
  }
}

/** Why a wait takes no answer. */
export const reasons = {
  otherAnswer: 'has an answer.',
  timedOut: 'is over: no answer came in time.',
  ended: 'is over: its run has ended.',
}

function toResponse(wait: Wait): Schemas['Wait'] {
  const { declared, completedBy } = wait
  const by = completedBy && { apiKeyId: null, userId: null, linkId: null, ...toMembers(completedBy) }
  return {
    id: wait.id,
    runId: wait.runId,
    workflowId: wait.workflowId,
    name: wait.name,
    kind: wait.kind,
    status: wait.status,
    title: wait.title,
    description: declared?.description ?? null,
    schema: declared?.schema ?? null,
    shown: wait.shown,
    createdAt: toTimestamp(wait.reachedAt),
    deadline: toTimestamp(wait.deadline),
    completedAt: toTimestamp(wait.completedAt),
    completedBy: by,
    value: wait.value ?? null,
    calledRunId: wait.calledRunId,
  }
}

function toMembers(by: NonNullable<Wait['completedBy']>) {
  return 'link' in by ? { linkId: by.link, address: by.address } : by
}
