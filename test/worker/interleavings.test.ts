/** Waits, calls, ends, lost leases and stops may meet in any order. */
import { test } from 'vitest'
import { interleaveAll } from './interleave.ts'

test('500 interleavings lose no run and no slot', () => interleaveAll(500))
