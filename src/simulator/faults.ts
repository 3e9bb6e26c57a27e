/** Faults on request: operations respond late, with errors, or not at all. Which requests fail depends only on the seed. */
import { setTimeout as delay } from 'node:timers/promises'
import type { HandlerResponse } from '../contract/exchange.ts'
import type { ProblemMember } from '../contract/problem.ts'
import { internalError, problemResponse, rateLimited, rateLimitHeaders, unavailable } from '../contract/response.ts'
import type { Interception } from '../contract/stages.ts'
import type { JsonSchema } from '../domain/workflows/workflow.ts'
import { toPointer } from '../openapi/json-pointer.ts'
import { compileForm } from './check-form.ts'
import { suggest } from './closest-name.ts'
import { seededFraction } from './seeded-fraction.ts'

export interface Fault {
  /** Milliseconds of the machine before a request is processed. */
  latencyMs?: number
  /** Requests that fail: 1 if it is absent and the other members name failures. */
  errorRate?: number
  /** Responses of requests that fail, each as often as the others. */
  statuses?: readonly FaultStatus[]
  /** Requests that fail also lose their connection, as often as they get each status. */
  dropConnections?: false | DroppedConnection
}

/** When a connection is closed: before its request is processed, or in place of the response. */
type DroppedConnection = 'before' | 'after'

export const faultStatuses = [429, 500, 503, 507] as const
export type FaultStatus = (typeof faultStatuses)[number]

/** By operationId; `*` is for all other operations. */
export type FaultsByOperation = Readonly<Record<string, Fault>>

export const everyOperation = '*'

/** What faults need to know of an operation. */
export interface FaultyOperation {
  id: string
  /** By the documented status. */
  responses: { has(status: number): boolean }
}

/** JSON Schema of the body that sets faults. */
export const faultsSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['operations'],
  properties: {
    operations: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: {
          latencyMs: {
            ...{ type: 'number', minimum: 0, maximum: 60_000 },
            description:
              'Each request waits for these real milliseconds, also if the clock of the simulator stands still.',
          },
          errorRate: {
            ...{ type: 'number', minimum: 0, maximum: 1 },
            description: 'The part of the requests that fail. 1 by default, if there are ways to fail.',
          },
          statuses: {
            ...{ type: 'array', uniqueItems: true, minItems: 1, items: { enum: faultStatuses } },
            description: 'How requests fail: `429`, `500`, `503` and `507`, if the operation documents it.',
          },
          dropConnections: {
            enum: [false, true, 'before', 'after'],
            description:
              'Another way to fail: the connection is closed before the request is processed (`before` or `true`), or in place of the response (`after`).',
          },
        },
      },
    },
  },
}

export interface SavedFaults {
  operations: FaultsByOperation
  counts: Readonly<Record<string, number>>
}

export class Faults {
  readonly #seed: string
  readonly #operations: ReadonlyMap<string, FaultyOperation>
  #faults: FaultsByOperation = {}
  /** Requests of each operation since the faults were set. */
  #counts = new Map<string, number>()

  /** @param operations those of all documents. */
  constructor(seed: string, operations: readonly FaultyOperation[]) {
    this.#seed = seed
    this.#operations = new Map(operations.map((operation) => [operation.id, operation]))
  }

  /** Replaces all faults. Returns what is wrong with the body, and then changes nothing. */
  set(body: unknown): ProblemMember[] {
    checkForm ??= compileForm(faultsSchema)
    const problems = checkForm(body).map(({ path, detail }) => ({ pointer: toPointer(path), detail }))
    if (problems.length > 0) return problems
    const { operations } = body as { operations: Record<string, Fault & { dropConnections?: boolean | string }> }
    const errors = Object.entries(operations).flatMap(([id, fault]) => this.#check(id, fault))
    if (errors.length > 0) return errors
    this.#faults = Object.fromEntries(Object.entries(operations).map(([id, fault]) => [id, toFault(fault)]))
    this.#counts = new Map()
    return []
  }

  #check(id: string, { statuses = [], errorRate, dropConnections = false }: Fault): ProblemMember[] {
    const pointer = toPointer(['operations', id])
    const operation = this.#operations.get(id)
    if (!operation && id !== everyOperation) {
      return [{ pointer, detail: `is no operation: ${suggest(id, [...this.#operations.keys()], 'operations')}` }]
    }
    const isUseless = errorRate !== undefined && statuses.length === 0 && dropConnections === false
    if (isUseless) return [{ pointer: `${pointer}/errorRate`, detail: 'needs "statuses" or "dropConnections"' }]
    return statuses.flatMap((status, index) =>
      operation?.responses.has(status) === false
        ? [{ pointer: `${pointer}/statuses/${index}`, detail: `is ${status}, which ${id} does not document` }]
        : [],
    )
  }

  get current(): { operations: FaultsByOperation } {
    return { operations: this.#faults }
  }

  save(): SavedFaults {
    return { operations: this.#faults, counts: Object.fromEntries(this.#counts) }
  }

  restore({ operations, counts }: SavedFaults): void {
    this.#faults = operations
    this.#counts = new Map(Object.entries(counts))
  }

  readonly intercept = async (operation: FaultyOperation): Promise<Interception> => {
    const fault = this.#faults[operation.id] ?? this.#faults[everyOperation]
    if (!fault) return undefined
    // Decided in the order of the requests.
    const failure = this.#failureOf(operation, fault)
    if (fault.latencyMs) await delay(fault.latencyMs)
    return failure
  }

  #failureOf({ id, responses }: FaultyOperation, fault: Fault): Interception {
    const { statuses = [], dropConnections = false } = fault
    const count = (this.#counts.get(id) ?? 0) + 1
    this.#counts.set(id, count)
    const failures: Interception[] = statuses.filter((status) => responses.has(status)).map(responseOf)
    if (dropConnections !== false) failures.push(dropConnections === 'after' ? 'droppedAfterwards' : 'dropped')
    const random = (what: string) => seededFraction(this.#seed, 'faults', id, String(count), what)
    if (failures.length === 0 || random('fails') >= (fault.errorRate ?? 1)) return undefined
    return failures[Math.floor(random('failure') * failures.length)]
  }
}

let checkForm: ReturnType<typeof compileForm> | undefined

function toFault({
  dropConnections,
  ...fault
}: Omit<Fault, 'dropConnections'> & { dropConnections?: boolean | string }) {
  if (dropConnections === undefined) return fault
  return { ...fault, dropConnections: (dropConnections === true ? 'before' : dropConnections) as DroppedConnection }
}

const retrySeconds = 1

/** As the service sends it. */
function responseOf(status: FaultStatus): HandlerResponse {
  switch (status) {
    case 429: {
      const limit = { policy: 'api-key', requestsMax: 600, windowSeconds: 60, remaining: 0, resetSeconds: retrySeconds }
      const exceeded = { ...limit, isExceeded: true }
      const response = rateLimited(exceeded)
      return { ...response, headers: { ...response.headers, ...rateLimitHeaders(exceeded) } }
    }
    case 500:
      return internalError
    case 503:
      return unavailable
    case 507:
      return problemResponse({
        kind: 'storage-quota-exceeded',
        detail:
          'This account has reached its storage quota. Delete runs, files or browser contexts, or wait until their retention ends. Nothing was stored.',
      })
  }
}
