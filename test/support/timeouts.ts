/**
 * Options of `vi.waitFor`, `vi.waitUntil` and other polls. The timeout suffices on a busy machine, and is below the limit
 * of a test, so that the error names the condition.
 */
export const waitLimits = { timeout: 60_000, interval: 10 }
