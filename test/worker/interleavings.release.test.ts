/** Waits, calls, ends, lost leases and stops may meet in any order. */
import { test } from 'vitest'
import { interleaveAll } from './interleave.ts'

test('100,000 interleavings lose no run and no slot', { timeout: 3_600_000 }, () => interleaveAll(100_000))
