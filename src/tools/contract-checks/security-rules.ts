/** Where the OWASP rules do not hold for these documents, and why. Every other one is an error. */

interface Tuned {
  because: string
  /** The rule is not applied. */
  off?: true
  /** It holds for what callers send; components are looked at where they stand, not wherever they are referred to. */
  requestsOnly?: true
  /** It looks at components where they stand. */
  components?: true
  /** Members of the rule that are written in another way. */
  rule?: Record<string, unknown>
}

export const tuned: Record<string, Tuned> = {
  'owasp:api4:2023-array-limit': {
    components: true,
    because: 'A component that many operations refer to is one finding.',
  },
  'owasp:api4:2023-integer-limit': {
    requestsOnly: true,
    because: 'Answers count what there is; only numbers that callers choose can exhaust anything.',
  },
  'owasp:api4:2023-string-limit': {
    requestsOnly: true,
    because: 'Answers hold what was stored; only text that callers send can exhaust anything.',
  },
  'owasp:api4:2023-string-restricted': {
    requestsOnly: true,
    because: 'Words for people, such as titles and details of problems, have no form.',
  },
  'owasp:api4:2023-integer-format': {
    off: true,
    because: 'Numbers that callers send have bounds, which say more than 32 or 64 bits.',
  },
  'owasp:api4:2023-rate-limit': {
    rule: { given: '$.paths[*]..responses[429]' },
    because: 'The limit is told with the answer that refuses, so that others are not larger for it.',
  },
  'owasp:api8:2023-define-cors-origin': {
    off: true,
    because: 'API keys belong in no web page: without CORS headers, browsers keep other origins away.',
  },
  'owasp:api8:2023-no-server-http': {
    rule: { given: '$.servers[?(!@.url.match(/^http:.*127\\.0\\.0\\.1:/))].url' },
    because: 'The default address is on loopback; TLS is for the proxy of whoever serves others.',
  },
  'owasp:api9:2023-inventory-access': {
    off: true,
    because: 'The only server is the default address; who may reach another is for its operator to say.',
  },
  'owasp:api9:2023-inventory-environment': {
    off: true,
    because: 'The same: there is one server, on this machine.',
  },
}

const storageState = 'The body as a whole is bounded, by 5 MiB; within it, sites and Playwright choose.'

/** Single places, as rule and the beginning of a JSON Pointer; one that excuses nothing any more is an error. */
export const exceptions: Record<string, string> = {
  'owasp:api4:2023-array-limit /components/schemas/OriginStorage/': storageState,
  'owasp:api4:2023-array-limit /components/schemas/StorageState/': storageState,
  'owasp:api4:2023-array-limit /components/schemas/WorkflowList/': 'As many as the operator has installed.',
  'owasp:api4:2023-string-limit /components/schemas/ArtifactName': 'Its pattern bounds it.',
  'owasp:api4:2023-string-limit /components/schemas/Cookie/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/NameValue/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/OriginStorage/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/Timestamp':
    'Its format bounds it, and 16 KiB all headers and the path.',
  'owasp:api4:2023-string-limit /paths/~1v1~1execution~1runs~1{runId}~1events/get/parameters/0/':
    'Its pattern bounds it.',
  'owasp:api4:2023-string-restricted /components/parameters/Prefer/': 'Unknown preferences are ignored (RFC 7240).',
  'owasp:api4:2023-string-restricted /components/schemas/Cookie/': storageState,
  'owasp:api4:2023-string-restricted /components/schemas/NameValue/': storageState,
}
