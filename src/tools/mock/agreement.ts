/**
 * Makes a documented example agree with its request: the ids of the path, the members of the body, the filters of a list.
 * Times stay those of the example, except those that a request asks for.
 */
import type { HandlerRequest } from '../../contract/exchange.ts'
import { fromParameters } from '../../domain/queue/run-options.ts'
import type { Operation } from '../../openapi/served-operations.ts'
import { isChosen } from './preferences.ts'

type Members = Record<string, unknown>
type AnsweredRequest = Pick<HandlerRequest, 'path' | 'query' | 'headers'> & { body?: unknown }

/** Operations on a resource whose response is this resource, although their path does not end with its id. */
const ofResource = ['cancelRun', 'rotateWebhookSecret', 'activateDeployment']

/** Operations whose response has the members of their request. */
const storing = [
  ...['createBrowserContext', 'updateBrowserContext', 'createSchedule', 'updateSchedule'],
  ...['createWebhookEndpoint', 'updateWebhookEndpoint', 'putSetting'],
  ...['createNotificationRule', 'updateNotificationRule'],
]

/** @param now milliseconds since 1970. */
export function agree(operation: Operation, request: AnsweredRequest, body: unknown, now: number): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const { data, nextCursor } = body as { data?: unknown; nextCursor?: unknown }
  if (Array.isArray(data) && nextCursor !== undefined) {
    const { limit } = request.query as { limit?: number }
    const items = data.map((item: Members) => ({ ...item, ...namedIn(request.path as Members, item) }))
    return { ...body, data: withFilters(items, request.query as Members).slice(0, limit) }
  }
  const resource = body as Members
  return {
    ...resource,
    // An example that the caller has chosen stays as it is.
    ...(storing.includes(operation.id) &&
      !isChosen(request.headers.prefer as string) && {
        ...repeated(request.body, resource),
        ...targetOf(operation, request.body),
      }),
    ...namedIn(request.path as Members, resource),
    ...identified(operation, request.path as Members, resource),
    ...expiry(request.body, resource, now),
  }
}

/** Members with the names of path parameters. */
function namedIn(path: Members, resource: Members): Members {
  // A context that is restored from a version gets a new one.
  const named = Object.entries(path).filter(([name]) => resource[name] !== undefined && name !== 'version')
  return Object.fromEntries(named.map(([name, value]) => [name, ofType(resource[name], value)]))
}

function ofType(example: unknown, value: unknown): unknown {
  return typeof example === 'number' ? Number(value) : value
}

function identified({ id, path }: Operation, parameters: Members, resource: Members): Members {
  if (id === 'rerunRun') return { rerunOf: parameters.runId }
  if (id === 'restoreBrowserContextVersion') return { restoredFrom: Number(parameters.version) }
  // A workflow's id is no UUID: the response to a queue request is a run.
  if (path.endsWith('/{workflowId}')) return {}
  const name = /\{(\w+Id)\}$/.exec(path)?.[1] ?? (ofResource.includes(id) ? Object.keys(parameters)[0] : undefined)
  const value = name === undefined ? undefined : parameters[name]
  return value !== undefined && typeof resource.id === 'string' ? { id: String(value).toLowerCase() } : {}
}

/** Simple members of the request's body that the response has too. */
function repeated(body: unknown, resource: Members): Members {
  if (typeof body !== 'object' || body === null || Buffer.isBuffer(body)) return {}
  const isSimple = (value: unknown): boolean =>
    Array.isArray(value) ? value.every(isSimple) : value === null || typeof value !== 'object'
  const same = Object.entries(body).filter(
    ([name, value]) => Object.hasOwn(resource, name) && (name === 'value' || isSimple(value)),
  )
  return Object.fromEntries(same)
}

/** The secret of the examples. */
const exampleSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD7d3C3hC1X2Y='

/** The parts of a notification rule that follow from its channel. */
function targetOf({ id }: Operation, body: unknown): Members {
  if (id !== 'createNotificationRule') return {}
  const { channel, recipients = [], url } = Object(body) as { channel?: string; recipients?: string[]; url?: string }
  const secret = channel === 'webhook' ? exampleSecret : null
  return { recipients, host: url === undefined ? null : (URL.parse(url)?.host ?? null), secret }
}

function expiry(body: unknown, { expiresAt }: Members, now: number): Members {
  const { expiresInSeconds } = Object(body) as { expiresInSeconds?: number }
  if (typeof expiresAt !== 'string' || expiresInSeconds === undefined) return {}
  return { expiresAt: new Date(now + expiresInSeconds * 1000).toISOString() }
}

/** Filters that any item may fit, beside tags. */
const assigned = ['name', 'apiKeyId', 'scheduleId', 'parentRunId', 'browserContextId']

/** The items that fit the filters of a list. */
export function withFilters(items: readonly Members[], query: Members): Members[] {
  const { tag, name, workflowId, createdAfter, createdBefore, errorWord } = query
  const given = assigned.filter((each) => query[each] !== undefined)
  const options = tag === undefined ? {} : fromParameters({ tag: [tag].flat() } as never)
  const fitting = items.filter(
    (item) =>
      ['status', 'kind', 'reason'].every(
        (each) => query[each] === undefined || ([query[each]].flat() as unknown[]).includes(item[each]),
      ) &&
      isBetween(item.createdAt, createdAfter, createdBefore) &&
      (errorWord === undefined ||
        JSON.stringify(item.error ?? null)
          .toLowerCase()
          .includes(String(errorWord).toLowerCase())),
  )
  const filled = fitting.map((item) => ({
    ...item,
    ...Object.fromEntries(given.filter((each) => each in item).map((each) => [each, query[each]])),
    ...Object.fromEntries(Object.entries(options).filter(([each]) => each in item)),
    // Runs get the workflow with its version and values.
    ...(workflowId !== undefined && 'workflowId' in item && !('variableData' in item) && { workflowId }),
  }))
  const sorted = query.order === 'oldestFirst' ? filled.toSorted(compareTimes) : filled
  // The names of browser contexts are unique.
  return name !== undefined && !items.some((item) => 'runId' in item) ? sorted.slice(0, 1) : sorted
}

function isBetween(time: unknown, after: unknown, before: unknown): boolean {
  const at = Date.parse(String(time))
  return !(at < Date.parse(String(after))) && !(at >= Date.parse(String(before)))
}

function compareTimes(a: Members, b: Members): number {
  return String(a.createdAt).localeCompare(String(b.createdAt))
}
