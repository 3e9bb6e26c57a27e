/** How many runs of a workflow may start within a period, and which starts are counted together. */

// How many runs of a workflow may run at the same time, and which runs are counted together.

export interface Concurrency {
  /** At least 1. */
  limit: number
  /** All runs of the workflow, those of an account, or those of an account with the same concurrency key. */
  per: ConcurrencyScope
}

export const concurrencyScopes = ['workflow', 'account', 'key'] as const
type ConcurrencyScope = (typeof concurrencyScopes)[number]

/** The limit if it is counted in this scope; Infinity otherwise. */
export function limitPer(
  scope: ConcurrencyScope,
  workflow: { concurrency?: Concurrency | undefined } | undefined,
): number {
  const concurrency = workflow?.concurrency
  return concurrency?.per === scope ? concurrency.limit : Number.POSITIVE_INFINITY
}

export interface Throttle {
  /** Maximum number of attempts that start within any period of this length. */
  limit: number
  periodSeconds: number
  /** All runs of the workflow, those of an account, or those of an account with the same concurrency key. */
  per: ConcurrencyScope
}

/** The starts within the period are stored, one row for each. */
const throttleLimitMax = 10_000
/** A day. */
const throttlePeriodSecondsMax = 24 * 60 * 60

export const throttleMembers = ['limit', 'periodSeconds', 'per'] as const

/** @param check throws unless the definition follows the rule. */
export function parseThrottle(
  throttle: unknown,
  check: (isValid: boolean, rule: string) => asserts isValid,
): { throttle?: Throttle } {
  if (throttle === undefined) return {}
  const isObject = typeof throttle === 'object' && throttle !== null && !Array.isArray(throttle)
  check(isObject, 'throttle must be an object with a limit and periodSeconds')
  const { limit, periodSeconds, per = 'account' } = throttle as { [Name in keyof Throttle]?: unknown }
  check(
    isIntegerUpTo(throttleLimitMax, limit),
    `throttle.limit must be an integer of at least 1 and at most ${throttleLimitMax}`,
  )
  check(
    isIntegerUpTo(throttlePeriodSecondsMax, periodSeconds),
    `throttle.periodSeconds must be an integer of at least 1 and at most ${throttlePeriodSecondsMax}`,
  )
  const scope = concurrencyScopes.find((each) => each === per)
  check(scope !== undefined, `throttle.per must be one of ${concurrencyScopes.join(', ')}`)
  return { throttle: { limit, periodSeconds, per: scope } }
}

/** Whether a stored rate is this one. A deployment may have changed the rate since it was stored. */
export function isStoredRate(
  { limit_count, period_seconds }: { limit_count: number | null; period_seconds: number | null },
  throttle: Throttle | undefined,
): boolean {
  return limit_count !== null && throttle?.limit === limit_count && throttle.periodSeconds === period_seconds
}

function isIntegerUpTo(max: number, value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max
}
