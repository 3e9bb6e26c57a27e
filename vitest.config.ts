/** How `npm test` runs: every file in test/, several at a time, each with services, stores and accounts of its own. */
import { defineConfig } from 'vitest/config'

// The time limits are for a machine that is busy with something else; the tests themselves wait for conditions.
const limits = { testTimeout: 60_000, hookTimeout: 60_000 }

export default defineConfig({
  test: {
    // More than cores: many tests wait for processes and clocks.
    maxWorkers: 3,
    projects: [
      {
        test: {
          ...limits,
          name: 'processes',
          include: ['test/{e2e,worker,browser,command-line}/**/*.test.ts'],
        },
      },
      {
        test: {
          ...limits,
          name: 'parts',
          include: ['test/{unit,contract,contract-machinery,storage,dashboard}/**/*.test.ts'],
          // A process for each file would load the service each time: a third of all the time that tests take.
          isolate: false,
        },
      },
    ],
  },
})
