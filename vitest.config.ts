/** How `npm test` runs: every file in test/, several at a time, none of them sharing anything. */
import { defineConfig } from 'vitest/config'

// The time limits are for a machine that is busy with something else; the tests themselves wait for conditions.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // More than cores: many tests wait for processes and clocks.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
