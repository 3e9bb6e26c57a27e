/**
 * How long tests wait for what must come: long enough for a machine that is busy with something else, and still below
 * the time limit of a test, so that what was waited for is told. For `vi.waitFor`, `vi.waitUntil` and
 * whatever else waits for a condition.
 */
export const waitLimits = { timeout: 60_000, interval: 10 }
