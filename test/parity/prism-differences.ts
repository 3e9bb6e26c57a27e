/** In what Prism alone answers otherwise than the service: what the mock has in front of it, and why. */
import { type Difference, permitted } from './differences.ts'
import type { Outcome } from './servers.ts'

/** Of a request that Prism leaves without an answer. */
export const unanswered: Outcome = { status: 0, mediaType: '', headers: [] }

const isSuccess = ({ status }: Outcome) => status >= 200 && status < 300
const told = ({ errors = [] }: Outcome, pattern: RegExp) => errors.some((error) => pattern.test(error))

/** The headers that each of them sends with an answer by itself. */
const own = /^(cache-control|x-request-id|x-document-hash|access-control-[a-z-]+|sl-violations):/

const withoutOwn = ({ headers }: Outcome) => JSON.stringify(headers.filter((header) => !own.test(header)))

const hasAllow = ({ headers }: Outcome) => headers.some((header) => header.startsWith('allow:'))

/** The service refuses with the status what Prism takes. */
function taken(status: number, pattern = /^/): Difference['is'] {
  return (_, service, prism) => {
    return service.status === status && isSuccess(prism) && (status !== 400 || told(service, pattern))
  }
}

export const ofPrismAlone: readonly Difference[] = [
  {
    what: 'Any key is good, and has every scope',
    why: 'Prism asks whether there is a key, and not which: 401 and 403 are never met.',
    is: (_, service, prism) => [401, 403].includes(service.status) && isSuccess(prism),
  },
  {
    what: '`bearer` in lower case is no credential',
    why: 'RFC 9110 has the names of schemes without regard to case.',
    is: (_, service, prism) => isSuccess(service) && prism.status === 401,
  },
  {
    what: 'An invalid request is told so before its key is looked at',
    why: 'Prism looks at everything at once, and answers with what it finds first.',
    is: (_, service, prism) => [401, 403].includes(service.status) && [400, 415].includes(prism.status),
  },
  {
    what: 'What is not JSON, an escape that is broken, a byte order mark and an unreadable Accept have no answer',
    why: 'Prism drops its own error, and the caller waits for ever.',
    is: (_, _service, prism) => prism === unanswered,
  },
  {
    what: 'Query parameters and bodies that the operation does not have are taken',
    why: 'Prism looks at what is documented, and at nothing else.',
    is: taken(400, /is not a parameter of this operation|takes no body/),
  },
  {
    what: 'Parameters and headers that are empty are taken',
    why: 'Prism takes an empty value for none.',
    is: (each, ...outcomes) => {
      return /empty$|without =$|too short$/.test(each.title) && taken(400, /^\{"(parameter|header)"/)(each, ...outcomes)
    },
  },
  {
    what: 'Bodies that are not UTF-8 or not I-JSON are taken, and `null` for an object',
    why: 'Members twice, lone surrogates, U+0000, `__proto__` and depth are no matter of a schema.',
    is: taken(400, /^\{"pointer"/),
  },
  {
    what: 'The answer 400 names always the same member',
    why: 'It is the example of the document, whatever is wrong.',
    is: (_, service, prism) => {
      return service.status === 400 && prism.status === 400 && service.type === prism.type
    },
  },
  {
    what: 'Bodies of any size, in any coding and of some other media types are taken; others are a 400 or a 500',
    why: 'Prism has no limit of its own, and does not look at Content-Encoding.',
    is: (_, service, prism) => [413, 415].includes(service.status) && prism.status !== service.status,
  },
  {
    what: 'Problems of 404, 405 and 406 are of types of Prism, and Allow is missing',
    why: 'Prism does not look for its own errors in the document.',
    is: (_, service, prism) => {
      const isOther = service.type !== prism.type || hasAllow(service) !== hasAllow(prism)
      return [404, 405, 406].includes(service.status) && service.status === prism.status && isOther
    },
  },
  {
    what: 'Paths are mended before they are looked up',
    why: '`/v1/execution/runs/` and `/v1//execution/runs` are other paths than the one that exists.',
    is: ({ operation }, service, prism) => {
      const isElsewhere = operation === undefined || service.status === 404 || prism.status === 404
      // Either of them has not found what the other has.
      const isUnfound = [404, 405].includes(prism.status) || [404, 405].includes(service.status)
      return isElsewhere && isUnfound && service.status !== prism.status && [400, 401, 404, 405].includes(prism.status)
    },
  },
  {
    what: 'What is not HTTP, and headers that are too large, are told so without a word',
    why: 'Node answers by itself where nobody tells it otherwise.',
    is: (_, service, prism) =>
      [400, 431].includes(service.status) && prism.status === service.status && prism.mediaType === '',
  },
  {
    what: 'queueRemoteRun answers 200 with a finished run, also when nobody waits',
    why: 'Prism takes the lowest success, which is the one for callers that wait.',
    is: ({ operation }, service, prism) => {
      return operation?.id === 'queueRemoteRun' && service.status === 202 && prism.status === 200
    },
  },
  {
    what: 'A file is the word `string`, of the first media type that fits',
    why: 'A schema of `format: binary` has no example, and Prism makes a string of it.',
    is: ({ operation }, service, prism) => {
      return operation?.id === 'getRunArtifact' && service.status === 200 && prism.status === 200
    },
  },
  {
    what: 'An answer without a body has a media type',
    why: 'Prism says text/plain of 204.',
    is: (_, service, prism) => service.status === 204 && prism.status === 204 && prism.mediaType !== '',
  },
  {
    what: 'No answer has Cache-Control, all have the same X-Request-Id and X-Document-Hash, and some of Prism',
    why: 'Headers are the examples of the document, as far as it has them; `sl-violations` and CORS are its own.',
    is: (_, service, prism) => {
      const { status, mediaType, type } = service
      const isSame = status === prism.status && mediaType === prism.mediaType && type === prism.type
      return isSame && withoutOwn(service) === withoutOwn(prism)
    },
  },
  {
    what: 'The challenge of both APIs is that of the Execution API',
    why: 'Both documents have the same example of `WWW-Authenticate`.',
    is: ({ surface }, service, prism) => {
      const isChallenge = (header: string) => header.startsWith('www-authenticate:')
      const [expected, found] = [service, prism].map(({ headers }) => headers.find(isChallenge))
      return surface === 'browserContext' && service.status === 401 && prism.status === 401 && expected !== found
    },
  },
  {
    what: 'Documented optional headers are sent always',
    why: 'Prism sends Idempotent-Replayed and Preference-Applied with every run.',
    is: (_, service, prism) => {
      const isReplayed = ({ headers }: Outcome) => headers.includes('idempotent-replayed: true')
      return isReplayed(prism) && !isReplayed(service)
    },
  },
  {
    what: 'What the mock forgets, Prism forgets too',
    why: 'Neither has state: the differences that are permitted to the mock in this respect.',
    is: (each, service, prism) => permitted.some((difference) => difference.is(each, service, prism)),
  },
]
