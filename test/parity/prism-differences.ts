/** The differences between `prism mock` and the service, which the stages of the mock in front of Prism remove. */
import { type Difference, permitted } from './differences.ts'
import type { Outcome } from './servers.ts'

/** The outcome of a request to which Prism never responds. */
export const noResponse: Outcome = { status: 0, mediaType: '', headers: [] }

const isSuccess = ({ status }: Outcome) => status >= 200 && status < 300
const hasError = ({ errors = [] }: Outcome, pattern: RegExp) => errors.some((error) => pattern.test(error))

/** Headers that one of them adds to every response. */
const added = /^(cache-control|x-(content-type-options|request-id|document-hash)|access-control-[a-z-]+|sl-violations):/

const withoutAdded = ({ headers }: Outcome) => JSON.stringify(headers.filter((header) => !added.test(header)))

const hasAllow = ({ headers }: Outcome) => headers.some((header) => header.startsWith('allow:'))

/** The service rejects with the status what Prism accepts. */
function accepts(status: number, pattern = /^/): Difference['is'] {
  return (_, service, prism) => {
    return service.status === status && isSuccess(prism) && (status !== 400 || hasError(service, pattern))
  }
}

export const prismDifferences: readonly Difference[] = [
  {
    what: 'Prism accepts any key, with every scope',
    why: 'Prism checks only that a key is present, so 401 and 403 never occur for a wrong key.',
    is: (_, service, prism) => [401, 403].includes(service.status) && isSuccess(prism),
  },
  {
    what: 'Prism rejects `bearer` in lower case',
    why: 'Names of schemes are case-insensitive (RFC 9110).',
    is: (_, service, prism) => ![400, 401, 403].includes(service.status) && prism.status === 401,
  },
  {
    what: 'Prism reports an invalid request without checking the key first',
    why: 'Prism validates everything at once and responds with the first violation.',
    is: (_, service, prism) => [401, 403].includes(service.status) && [400, 415].includes(prism.status),
  },
  {
    what: 'Prism never responds to malformed JSON, malformed percent-encoding in a path, a byte order mark or a malformed Accept',
    why: 'Prism does not handle its own exception.',
    is: (_, _service, prism) => prism === noResponse,
  },
  {
    what: 'Prism accepts undocumented query parameters and bodies',
    why: 'Prism validates only what is documented.',
    is: accepts(400, /is not a parameter of this operation|takes no body/),
  },
  {
    what: 'Prism accepts malformed percent-encoding in a query',
    why: 'Prism reads `%zz` as three characters, which are a valid name of a browser context.',
    is: accepts(400, /is not percent-encoded correctly/),
  },
  {
    what: 'Prism accepts empty parameters and headers',
    why: 'Prism treats an empty value as missing.',
    is: (each, ...outcomes) => {
      return (
        /empty$|without =$|too short$/.test(each.title) && accepts(400, /^\{"(parameter|header)"/)(each, ...outcomes)
      )
    },
  },
  {
    what: 'Prism accepts bodies that are not UTF-8 or not I-JSON, and `null` for an object',
    why: 'A schema does not cover duplicate members, lone surrogates, U+0000, `__proto__` and depth.',
    is: accepts(400, /^\{"pointer"/),
  },
  {
    what: 'Every 400 response of Prism names the same member',
    why: 'It is the example of the document.',
    is: (_, service, prism) => {
      return service.status === 400 && prism.status === 400 && service.type === prism.type
    },
  },
  {
    what: 'Prism accepts bodies of any size, any encoding and some other media types, and responds 400 or 500 to others',
    why: 'Prism has no limit and ignores Content-Encoding.',
    is: (_, service, prism) => [413, 415].includes(service.status) && prism.status !== service.status,
  },
  {
    what: "404, 405 and 406 responses have Prism's problem types and no Allow",
    why: 'Prism does not use the document for its own errors.',
    is: (_, service, prism) => {
      const isOther = service.type !== prism.type || hasAllow(service) !== hasAllow(prism)
      return [404, 405, 406].includes(service.status) && service.status === prism.status && isOther
    },
  },
  {
    what: 'Prism normalises paths',
    why: '`/v1/execution/runs/` and `/v1//execution/runs` are not paths of the document.',
    is: ({ operation }, service, prism) => {
      const isUnknownPath = operation === undefined || service.status === 404 || prism.status === 404
      const isUnfound = [404, 405].includes(prism.status) || [404, 405].includes(service.status)
      return (
        isUnknownPath && isUnfound && service.status !== prism.status && [400, 401, 404, 405].includes(prism.status)
      )
    },
  },
  {
    what: 'Prism responds to invalid HTTP and to large headers without a body',
    why: "These are Node's default responses.",
    is: (_, service, prism) =>
      [400, 431].includes(service.status) && prism.status === service.status && prism.mediaType === '',
  },
  {
    what: 'Prism responds 200 with a finished run to queueRemoteRun, even without `Prefer: wait`',
    why: 'Prism chooses the lowest success status.',
    is: ({ operation }, service, prism) => {
      return operation?.id === 'queueRemoteRun' && service.status === 202 && prism.status === 200
    },
  },
  {
    what: 'Prism responds 200 to every deployment, and refuses very large ones in its own way',
    why: 'Prism loads no modules, keeps no state, and limits bodies by itself.',
    is: ({ operation }, service, prism) =>
      operation?.id === 'createDeployment' &&
      [200, 201, 400, 413].includes(service.status) &&
      [200, 413].includes(prism.status),
  },
  {
    what: 'Prism refuses a large artifact of an attempt with 413, and takes events that do not follow earlier ones',
    why: 'Prism limits bodies by itself, and keeps no state.',
    is: ({ operation }, service, prism) =>
      (operation?.id === 'putAttemptArtifact' && [204, 400, 413].includes(service.status) && prism.status === 413) ||
      (operation?.id === 'appendRunEvents' && service.status === 400 && prism.status === 204),
  },
  {
    what: 'A file of Prism contains the word `string` and has the first acceptable media type',
    why: 'Prism makes up a string for `format: binary`.',
    is: ({ operation }, service, prism) => {
      const downloads = ['getRunArtifact', 'getFile', 'getAttemptFile']
      return downloads.includes(operation?.id ?? '') && service.status === 200 && prism.status === 200
    },
  },
  {
    what: 'Responses without a body have a media type',
    why: 'Prism sends text/plain with 204.',
    is: (_, service, prism) => service.status === 204 && prism.status === 204 && prism.mediaType !== '',
  },
  {
    what: 'Most responses lack Cache-Control and X-Content-Type-Options; all have the same X-Request-Id and headers of Prism',
    why: 'Prism sends only documented headers, with their examples (also of X-Document-Hash), `sl-violations` and CORS headers.',
    is: (_, service, prism) => {
      const { status, mediaType, type } = service
      const isSame = status === prism.status && mediaType === prism.mediaType && type === prism.type
      return isSame && withoutAdded(service) === withoutAdded(prism)
    },
  },
  {
    what: 'Both APIs send the challenge of the Execution API',
    why: 'Both documents have the same example of `WWW-Authenticate`.',
    is: ({ surface }, service, prism) => {
      const isChallenge = (header: string) => header.startsWith('www-authenticate:')
      const [expected, found] = [service, prism].map(({ headers }) => headers.find(isChallenge))
      return surface === 'browserContext' && service.status === 401 && prism.status === 401 && expected !== found
    },
  },
  {
    what: 'Prism always sends optional headers',
    why: 'Idempotent-Replayed and Preference-Applied come with every run.',
    is: (_, service, prism) => {
      const isReplayed = ({ headers }: Outcome) => headers.includes('idempotent-replayed: true')
      return isReplayed(prism) && !isReplayed(service)
    },
  },
  {
    what: 'Prism accepts variables, answers, cursors and combinations of parameters that only the service can check',
    why: 'Workflows have their own schemas, and no schema of the document expresses the other rules.',
    is: accepts(
      400,
      /\/(variableData|value\b)|"parameter":"(cursor|expiresInSeconds|browserContextId|concurrencyKey|errorWord)"/,
    ),
  },
  {
    what: 'Prism knows no workflow, run, artifact or browser context',
    why: 'Prism keeps no state, and responds to every id with its example.',
    is: accepts(404),
  },
  {
    what: "Prism has the mock's permitted differences, too",
    why: 'Neither keeps state.',
    is: (each, service, prism) => permitted.some((difference) => difference.is(each, service, prism)),
  },
]
