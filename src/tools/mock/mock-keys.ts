/** The mock's default ports and API keys: one key that is valid, and one for each error that a front end must handle. */

export const defaultPorts = { execution: '4001', browserContext: '4002' }

export interface MockKey {
  value: string
  /** The status of responses to this key; 200 stands for any success. */
  status: 200 | 401 | 403 | 429 | 500 | 503
  /** What the key stands for, shown at start and in the guide. */
  meaning: string
}

function createKey(status: MockKey['status'], meaning: string): MockKey {
  // Version and variant of a UUID v4, like the keys of the service.
  return { value: `00000000-0000-4000-8000-000000000${status}`, status, meaning }
}

export const validKey = createKey(200, 'Valid, with all scopes.')

export const mockKeys: readonly MockKey[] = [
  validKey,
  createKey(403, 'Valid, without any scope.'),
  createKey(401, 'Expired. An unknown key gets the same response.'),
  createKey(429, 'Has exceeded its rate limit.'),
  createKey(500, 'Causes an internal error.'),
  createKey(503, 'Finds the database unavailable.'),
]

export function renderKeyTable(): string {
  const rows = mockKeys.map(({ value, status, meaning }) => `| \`${value}\` | ${status} | ${meaning} |`)
  return ['| key | response | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}
