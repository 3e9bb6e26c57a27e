/** Counts of durations in exponential buckets, from which percentiles follow with a known error. */

/** Each bucket is 19 % wider than the one before, so a percentile is at most 9 % from the true one. */
const bucketsPerDoubling = 4

/** Counts by bucket; empty buckets are left out. */
export type DurationHistogram = Record<number, number>

export function addDuration(histogram: DurationHistogram, milliseconds: number): void {
  const bucket = Math.floor(Math.log2(Math.max(1, milliseconds)) * bucketsPerDoubling)
  histogram[bucket] = (histogram[bucket] ?? 0) + 1
}

export function addHistogram(histogram: DurationHistogram, other: DurationHistogram): void {
  for (const [bucket, count] of Object.entries(other)) {
    histogram[Number(bucket)] = (histogram[Number(bucket)] ?? 0) + count
  }
}

/** A percentile in milliseconds; `null` without durations. @param fraction 0.95 for the 95th percentile. */
export function percentile(histogram: DurationHistogram, fraction: number): number | null {
  // Integer keys are in ascending order.
  const buckets = Object.entries(histogram)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  let missing = Math.max(1, Math.ceil(total * fraction))
  for (const [bucket, count] of buckets) {
    missing -= count
    if (missing <= 0) return 2 ** ((Number(bucket) + 0.5) / bucketsPerDoubling)
  }
  return null
}
