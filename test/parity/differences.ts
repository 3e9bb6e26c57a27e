/** In which answers the mock may differ from the service, and why. One that no request shows any more has to go. */
import type { ParityCase } from './cases.ts'
import type { Outcome } from './servers.ts'

export interface Difference {
  what: string
  why: string
  is(each: ParityCase, service: Outcome, other: Outcome): boolean
}

const isSuccess = ({ status }: Outcome) => status < 300

/** Whether the service refuses these members alone, and the mock takes them. */
function refusesOnly(pattern: RegExp): Difference['is'] {
  return (_, service, mock) => {
    const { status, errors = [] } = service
    return status === 400 && errors.length > 0 && errors.every((error) => pattern.test(error)) && isSuccess(mock)
  }
}

const withoutCors = ({ headers, ...rest }: Outcome) =>
  JSON.stringify({ ...rest, headers: headers.filter((name) => !name.startsWith('access-control-')) })

const ofDomain = 'No schema of the document says so; what does is told in words, or is in what the service stores.'

export const permitted: readonly Difference[] = [
  {
    what: 'A resource that does not exist: 404, and the example of the mock',
    why: 'The mock stores nothing, so that every id that fits its schema is one that it knows.',
    is: ({ operation, title }, service, mock) => {
      const named = operation?.parameters.filter(
        (parameter) => parameter.in === 'path' || parameter.name === 'browserContextId',
      )
      const isOfName = named?.some(({ name }) => title.startsWith(`${operation?.id}: ${name} `)) ?? false
      return isOfName && service.status === 404 && isSuccess(mock)
    },
  },
  {
    what: 'A conflict with what was stored before: 409, and the example of the mock',
    why: 'The mock stores nothing that anything could be in conflict with.',
    is: (_, service, mock) => service.status === 409 && isSuccess(mock),
  },
  {
    what: '`Idempotent-Replayed`, when an `Idempotency-Key` was used before',
    why: 'The mock has forgotten that it was.',
    is: (_, { headers, ...service }, mock) => {
      const others = headers.filter((name) => !name.startsWith('idempotent-replayed'))
      return others.length < headers.length && JSON.stringify({ ...service, headers: others }) === withoutCors(mock)
    },
  },
  {
    what: 'Whether a run has events after `Last-Event-ID`: 200 or 204',
    why: 'The run of the mock has had the events of the example, and no other.',
    is: ({ operation }, service, mock) =>
      operation?.id === 'streamRunEvents' && service.status === 200 && mock.status === 204,
  },
  {
    what: "Variables that do not fit their workflow's schema: 400, and a run of the mock",
    why: 'The schema is in the workflow, not in the document.',
    is: (each, ...outcomes) => {
      return (
        each.title.includes('a body /variableData ') && refusesOnly(/^\{"pointer":"\/variableData\//)(each, ...outcomes)
      )
    },
  },
  {
    what: 'A cursor that was made up: 400, and a page of the mock',
    why: ofDomain,
    is: refusesOnly(/"parameter":"cursor"/),
  },
  {
    what: '`expiresInSeconds` that is not longer than `delaySeconds`: 400, and a run of the mock',
    why: ofDomain,
    is: refusesOnly(/"must be longer than delaySeconds"/),
  },
  {
    what: '`browserContextId` for a workflow that uses no browser: 400, and a run of the mock',
    why: ofDomain,
    is: refusesOnly(/"requires a workflow that uses a browser; this one does not"/),
  },
  {
    what: 'The mask `********` as the value of a secret: 400, and a run of the mock',
    why: 'Which variables are secrets is in the workflow, not in the document.',
    is: (each, ...outcomes) => each.title.includes('the mask') && refusesOnly(/"pointer"/)(each, ...outcomes),
  },
  {
    what: 'A key that has made too many requests: 429, and the example of the mock',
    why: 'The mock counts nothing; it has a key for this answer.',
    is: (_, service, mock) => service.status === 429 && isSuccess(mock),
  },
  {
    what: "The mock's own keys: 401, and 429, 500 or 503 of the mock",
    why: 'They are there so that a front end meets these answers.',
    is: ({ title }, service, mock) => {
      return title.includes('key of the mock') && service.status === 401 && [429, 500, 503].includes(mock.status)
    },
  },
  {
    what: '`Prefer` with `code` or `example`: ignored, and obeyed by the mock',
    why: 'So that a front end meets every documented answer. The service ignores what it does not know (RFC 7240).',
    is: ({ title }, service, mock) => title.includes('Prefer: code=404') && isSuccess(service) && mock.status === 404,
  },
  {
    what: '`Prefer` with a `code`, `example` or `dynamic` that there is not: ignored, and 400 of the mock',
    why: 'So that a mistake in the wish is noticed.',
    is: ({ title }, service, mock) => {
      const { status, errors = [] } = mock
      const isToldOf = errors.every((error) => error.startsWith('{"header":"Prefer"'))
      return /Prefer: .*, which there is not/.test(title) && isSuccess(service) && status === 400 && isToldOf
    },
  },
  {
    what: 'A preflight: 405, and answered by the mock',
    why: 'Pages of any origin may call the mock. The service is called by servers, which send no preflight.',
    is: ({ title }, service, mock) => title.includes('preflight') && service.status === 405 && mock.status === 204,
  },
  {
    what: '`Access-Control-…` headers, when `Origin` is sent',
    why: 'As for a preflight.',
    is: ({ title }, service, mock) => title.includes('Origin') && withoutCors(service) === withoutCors(mock),
  },
]
