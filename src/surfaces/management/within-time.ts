/** A scrape does not wait for a store that does not answer. */
import { setTimeout as delay } from 'node:timers/promises'

/** Prometheus gives a scrape 10 s, for all that it asks. */
const millisecondsMax = 2000

/** What `act` finds in time, or nothing. */
export function withinTime<Result>(act: Promise<Result>): Promise<Result | undefined> {
  return Promise.race([act, delay(millisecondsMax, undefined, { ref: false })])
}
