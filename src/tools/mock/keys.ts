/** The API keys that the mock knows: one that is good, and one for each answer that a front end must be able to provoke. */

export interface MockKey {
  value: string
  /** What a request with it is answered with. */
  status: 200 | 401 | 403 | 429 | 500 | 503
  /** What it stands for, for the banner and the guide. */
  meaning: string
}

const key = (status: MockKey['status'], meaning: string): MockKey => ({
  // The version and variant of a UUID v4, which keys of the service have.
  value: `00000000-0000-4000-8000-000000000${status}`,
  status,
  meaning,
})

export const goodKey = key(200, 'May do everything.')

export const mockKeys: readonly MockKey[] = [
  goodKey,
  key(403, 'Has scopes that permit nothing.'),
  key(401, 'Has expired; not to be told from one that is unknown.'),
  key(429, 'Has made too many requests.'),
  key(500, 'Meets a fault of the service.'),
  key(503, 'Finds the store unavailable.'),
]

/** As the guide shows it. */
export function keyTable(): string {
  const rows = mockKeys.map(({ value, status, meaning }) => `| \`${value}\` | ${status} | ${meaning} |`)
  return ['| key | answer | what it stands for |', '| --- | --- | --- |', ...rows].join('\n')
}
