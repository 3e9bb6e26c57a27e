/** The permitted differences between the responses of the mock and of the service. Tests require each to occur. */
import type { ParityCase } from './cases.ts'
import type { Outcome } from './servers.ts'

export interface Difference {
  what: string
  why: string
  is(each: ParityCase, service: Outcome, other: Outcome): boolean
}

const isSuccess = ({ status }: Outcome) => status < 300

const withoutCors = ({ headers, ...rest }: Outcome) =>
  JSON.stringify({ ...rest, headers: headers.filter((name) => !name.startsWith('access-control-')) })

export const ofState: readonly Difference[] = [
  {
    what: 'A run, artifact or browser context that does not exist: the service responds 404, the mock with its example',
    why: 'The mock remembers nothing and accepts every valid id.',
    is: ({ operation, title }, service, mock) => {
      const named = operation?.parameters.filter(
        ({ name, in: place }) => name === 'browserContextId' || (place === 'path' && name !== 'workflowId'),
      )
      const isOfName = named?.some(({ name }) => title.startsWith(`${operation?.id}: ${name} `)) ?? false
      return isOfName && service.status === 404 && isSuccess(mock)
    },
  },
  {
    what: 'A conflict with a stored resource: the service responds 409, the mock with its example',
    why: 'The mock stores nothing.',
    is: (_, service, mock) => service.status === 409 && isSuccess(mock),
  },
  {
    what: 'A worker that another API key has registered: the service responds 404, the mock with its example',
    why: 'The mock registers no workers.',
    is: ({ operation, title }, service, mock) => {
      const ofWorker = ['deleteWorker', 'claimRuns', 'renewLeases', 'getDeploymentBundle']
      const isOther = title.endsWith('a key that is scoped') && ofWorker.includes(operation?.id ?? '')
      return isOther && service.status === 404 && isSuccess(mock)
    },
  },
  {
    what: 'A schedule or a sign-in whose members do not fit each other or its workflow: the service responds 400, the mock with its example',
    why: 'The mock compares both with the document only.',
    is: ({ operation }, service, mock) =>
      ['createSchedule', 'updateSchedule', 'setSignIn'].includes(operation?.id ?? '') &&
      service.status === 400 &&
      isSuccess(mock),
  },
  {
    what: 'A bundle whose modules are no workflows, or that is current already: the service responds 400 or 200, the mock 201',
    why: 'The mock loads no modules and stores nothing.',
    is: ({ operation }, service, mock) =>
      operation?.id === 'createDeployment' && [200, 400].includes(service.status) && mock.status === 201,
  },
  {
    what: 'Filters of a bulk action that cannot be combined: the service responds 400, the mock with its example',
    why: 'The mock compares filters with the document only.',
    is: ({ operation }, service, mock) =>
      ['bulkCancelRuns', 'bulkRerunRuns'].includes(operation?.id ?? '') && service.status === 400 && isSuccess(mock),
  },
  {
    what: 'Events and files of an attempt that do not follow what came before, or are too large in all: the service responds 400, the mock 204',
    why: 'The mock knows no attempts.',
    is: ({ operation }, service, mock) =>
      ['appendRunEvents', 'putAttemptArtifact'].includes(operation?.id ?? '') &&
      service.status === 400 &&
      isSuccess(mock),
  },
  {
    what: 'A rerun with variables or a `fromStep` that do not fit the run: the service responds 400, the mock with its example',
    why: 'The mock knows neither the workflow nor the steps of a run.',
    is: ({ operation }, service, mock) => operation?.id === 'rerunRun' && service.status === 400 && isSuccess(mock),
  },
  {
    what: 'A repeated `Idempotency-Key`: only the service sends `Idempotent-Replayed`',
    why: 'The mock stores nothing.',
    is: (_, { headers, ...service }, mock) => {
      const others = headers.filter((name) => !name.startsWith('idempotent-replayed'))
      return others.length < headers.length && JSON.stringify({ ...service, headers: others }) === withoutCors(mock)
    },
  },
  {
    what: '`If-Match`, `If-None-Match` and `Range`: the service responds 412, 304, 206 or 416, the mock with its example',
    why: 'The mock stores nothing that could have changed. `Prefer: code=412` responds with 412.',
    is: (_, service, mock) => [206, 304, 412, 416].includes(service.status) && isSuccess(mock),
  },
  {
    what: 'A key that exceeds its rate limit: the service responds 429, the mock with its example',
    why: 'The mock does not count requests; it has a key for this response.',
    is: (_, service, mock) => service.status === 429 && isSuccess(mock),
  },
  {
    what: "The mock's keys: the service responds 401, the mock 429, 500 or 503",
    why: 'They let a front end test these errors.',
    is: ({ title }, service, mock) => {
      return title.includes('key of the mock') && service.status === 401 && [429, 500, 503].includes(mock.status)
    },
  },
  {
    what: '`Prefer` with `code` or `example`: only the mock honours it',
    why: 'It lets a front end test every documented response. The service ignores unknown preferences (RFC 7240).',
    is: ({ title }, service, mock) => title.includes('Prefer: code=404') && isSuccess(service) && mock.status === 404,
  },
  {
    what: '`Prefer` with an unknown `code`, `example` or `dynamic`: the service ignores it, the mock responds 400',
    why: 'It reveals mistakes.',
    is: ({ title }, service, mock) => {
      const { status, errors = [] } = mock
      const areAboutPrefer = errors.every((error) => error.startsWith('{"header":"Prefer"'))
      return /Prefer: .*, which is unknown/.test(title) && isSuccess(service) && status === 400 && areAboutPrefer
    },
  },
]

/** The mock serves pages of any origin. */
export const ofPages: readonly Difference[] = [
  {
    what: 'A preflight: the service responds 405, the mock 204',
    why: 'Pages of any origin may call the mock. The service is meant for servers, which send no preflight.',
    is: ({ title }, service, mock) => title.includes('preflight') && service.status === 405 && mock.status === 204,
  },
  {
    what: 'A request with `Origin`: only the mock sends `Access-Control-…` headers',
    why: 'Pages of any origin may call the mock.',
    is: ({ title }, service, mock) => title.includes('Origin') && withoutCors(service) === withoutCors(mock),
  },
]

/** Of the mock, as the guide lists them. */
export const permitted = [...ofState, ...ofPages]
