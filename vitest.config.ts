/** How tests run: several files at a time, each with services, stores and accounts of its own. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { quickDirectory } from './test/support/memory.ts'
import { patience } from './test/support/timeouts.ts'

// Tests start many processes: compiling what all of them load takes a tenth of the time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/node', import.meta.url))

/**
 * For a machine that is busy with something else; the tests themselves wait for conditions, none of them for longer
 * than `patience`, so that what was waited for is told.
 */
const limits = {
  testTimeout: 3 * patience.timeout,
  hookTimeout: 3 * patience.timeout,
  expect: { poll: { timeout: patience.timeout } },
  // A report has what was found and not only its difference.
  chaiConfig: { truncateThreshold: 2000 },
}

/** Beside what they belong to, but too long for every change. */
const forConsumers = [
  'test/samples/samples.test.ts',
  'test/parity/parity.test.ts',
  'test/e2e/prism.test.ts',
  'test/e2e/demo.test.ts',
]

export default defineConfig({
  test: {
    // More than cores: many tests wait for processes and clocks.
    maxWorkers: 4,
    // For all projects. It starts a PostgreSQL when the first test asks for a database.
    globalSetup: 'test/support/postgres-databases.ts',
    projects: [
      {
        test: {
          ...limits,
          name: 'processes',
          include: ['test/{e2e,worker,browser,command-line}/**/*.test.ts'],
          exclude: forConsumers,
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          name: 'journeys-on-postgres',
          include: ['test/e2e/**/*.test.ts'],
          // These are of no store, or of one that they choose themselves.
          exclude: ['test/e2e/{browser,demo,draining,refused-start}.test.ts', ...forConsumers],
          env: { TEST_STORE: 'postgres' },
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          // `npm run test:faults`: they take too long for every change.
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/faults/print-figures.ts'],
        },
      },
      {
        test: {
          ...limits,
          // `npm run test:faults`, too: those that have their store from the environment.
          name: 'faults-on-postgres',
          include: ['test/operations/{two-accounts,fuzz,bad-*}.test.ts', 'test/faults/rolling-restart.test.ts'],
          globalSetup: ['test/faults/print-figures.ts'],
          env: { TEST_STORE: 'postgres' },
        },
      },
      {
        test: {
          ...limits,
          // `npm run test:faults`, too: they take minutes, and ask little of the store that test/storage has not seen.
          name: 'operations-on-postgres',
          include: ['test/operations/**/*.test.ts'],
          // In `faults-on-postgres`.
          exclude: ['test/operations/{two-accounts,fuzz,bad-*}.test.ts'],
          env: { TEST_STORE: 'postgres' },
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          name: 'consumers',
          // `npm run test:consumers`: what those get who install the client, use the mock, read the docs or add an operation.
          include: ['test/{consumers,client,docs,mock}/**/*.test.ts', ...forConsumers],
        },
      },
      {
        test: {
          ...limits,
          name: 'through-prism',
          // `npm run test:consumers`, too: Prism between every client and every service, and no violation.
          include: ['test/e2e/**/*.test.ts'],
          // These call no API, do so in a process of their own, or through Prism anyway.
          exclude: ['test/e2e/{demo,prism,refused-start}.test.ts'],
          env: { THROUGH_PRISM: '1' },
        },
      },
      {
        test: {
          ...limits,
          // `npm run test:dashboard`: each page by itself. What people do with them is in `npm test`.
          name: 'dashboard',
          include: ['test/dashboard/**/*.test.ts'],
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          // Projects run in the order of their names: what waits for processes and clocks begins before this, which keeps
          // all cores busy.
          name: 'within-one-process',
          include: [
            'test/{unit,contract,contract-machinery,storage}/**/*.test.ts',
            'test/{samples,parity,guard,generate}/**/*.test.ts',
          ],
          exclude: forConsumers,
          env: { TMPDIR: quickDirectory() },
          // A process for each file would load the service each time: a third of all the time that tests take.
          isolate: false,
        },
      },
    ],
  },
})
