/**
 * How tests run. Projects are cut by what their tests need, not by how long they take. `npm test` runs the quick set of
 * all projects; files in `slow` below run only in `npm run test:slow` and `npm run test:all`.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { fastTemporaryDirectory } from './test/support/memory-directory.ts'
import { waitLimits } from './test/support/timeouts.ts'

// Tests start many processes; a shared compile cache saves a tenth of the time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/node', import.meta.url))

type TestSet = 'quick' | 'slow' | 'all' | 'reliability'
const testSet = (process.env.TEST_SET ?? 'quick') as TestSet

/** The quick set has `first-key` and `service` instead. */
const slowJourneys = [
  'test/e2e/{prism,demo,examples,examples-browser,journeys,draining,roles}.test.ts',
  'test/e2e/{dashboard,browser,refused-start,tracing}.test.ts',
]

const slow = [
  'test/**/*.slow.test.ts',
  'test/{faults,consumers}/**/*.test.ts',
  'test/samples/samples.test.ts',
  'test/parity/parity.test.ts',
  'test/operations/fuzz.test.ts',
  ...slowJourneys,
]

/** These compare times, so only `npm run reliability` runs them, on a machine without other work. */
const timed = 'test/faults/promises/{floods,neighbours,soak}.test.ts'

/** The files of a project in the set that runs. */
function files(quickFiles: string[], slowFiles: string[], exclude: string[] = []) {
  if (testSet === 'quick') return { include: quickFiles, exclude: [...exclude, ...slow] }
  const include = testSet === 'slow' ? slowFiles : [...quickFiles, ...slowFiles]
  return { include, exclude: testSet === 'reliability' ? exclude : [...exclude, timed] }
}

/**
 * Limits for a machine that is busy with other work. Tests wait for conditions, each for at most `patience`, so that a
 * timeout names the condition.
 */
const limits = {
  testTimeout: 3 * waitLimits.timeout,
  hookTimeout: 3 * waitLimits.timeout,
  expect: { poll: { timeout: waitLimits.timeout } },
  // Print whole values in assertion errors.
  chaiConfig: { truncateThreshold: 2000 },
}

const inProcess =
  'test/{unit,domain,maintenance,contract,operations,storage,generate,contract-checks,samples,parity,dashboard,docs,client,mock}'
const startingProcesses = 'test/{e2e,worker,browser,commands}'

export default defineConfig({
  test: {
    // More workers than cores: many tests wait for processes and clocks.
    maxWorkers: 4,
    // One PostgreSQL for all projects, started when the first test asks for a database; the table of fault tests' figures.
    globalSetup: ['test/support/postgres-databases.ts', 'test/faults/print-figures.ts'],
    projects: [
      {
        test: {
          ...limits,
          name: 'in-process',
          ...files(
            [`${inProcess}/**/*.test.ts`],
            [
              `${inProcess}/**/*.slow.test.ts`,
              'test/samples/samples.test.ts',
              'test/parity/parity.test.ts',
              'test/operations/fuzz.test.ts',
            ],
          ),
          env: { TMPDIR: fastTemporaryDirectory() },
          // One process for all files of a worker: loading the service for each file takes a third of the time.
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          name: 'processes',
          ...files(
            [`${startingProcesses}/**/*.test.ts`],
            [`${startingProcesses}/**/*.slow.test.ts`, 'test/{faults,consumers}/**/*.test.ts', ...slowJourneys],
          ),
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          // The same guarantees on PostgreSQL, for tests that take their store from the environment.
          name: 'postgres',
          ...files(
            ['test/e2e/first-key.test.ts'],
            ['test/{operations,e2e}/**/*.test.ts', 'test/faults/rolling-restart.test.ts'],
            // These use no store, or choose one themselves.
            [
              'test/e2e/{browser,demo,draining,refused-start,prism}.test.ts',
              ...(testSet === 'slow' ? ['test/e2e/first-key.test.ts'] : []),
            ],
          ),
          env: { TEST_STORE: 'postgres' },
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          // `prism proxy` between clients and services; no request or response may violate the documents. Not the tests
          // of how connections end, which Prism hides.
          name: 'prism',
          ...files([], ['test/e2e/{examples,examples-browser,first-key,journeys,limits,roles,tracing}.test.ts']),
          env: { THROUGH_PRISM: '1' },
        },
      },
    ],
  },
})
