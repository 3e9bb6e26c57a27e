/**
 * How tests run. Projects are cut by what their tests need, not by how long they take. `npm test` runs the quick set of
 * all projects; files named `*.slow.test.ts` run before a change lands, and those named `*.release.test.ts` before a
 * release. Before a release, the journeys also run on PostgreSQL and through Prism.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { chooseDirectories, fastTemporaryDirectory } from './test/support/temporary-directories.ts'
import { waitLimits } from './test/support/timeouts.ts'

// Tests start many processes; a shared compile cache saves a tenth of the time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/node', import.meta.url))

// Services in tests, also in processes of their own, respond with 500 in place of what their documents do not allow.
process.env.UNDOCUMENTED_RESPONSES ??= 'refuse'

chooseDirectories()

type TestSet = 'quick' | 'slow' | 'release' | 'all' | 'reliability'
const testSet = (process.env.TEST_SET ?? 'quick') as TestSet

const slow = 'test/**/*.slow.test.ts'
const release = 'test/**/*.release.test.ts'

/** These compare times, so only `npm run reliability` runs them, on a machine without other work. */
const timed = 'test/**/*.timed.test.ts'

/** The files of a project in the set that runs: those of the directories that match `pattern`, except `exclude`. */
function files(pattern: string, exclude: string[] = []) {
  if (testSet === 'quick') return { include: [`${pattern}.test.ts`], exclude: [...exclude, slow, release, timed] }
  if (testSet === 'slow' || testSet === 'release') return { include: [`${pattern}.${testSet}.test.ts`], exclude }
  return { include: [`${pattern}.test.ts`], exclude: testSet === 'all' ? [...exclude, timed] : exclude }
}

/**
 * Limits for a machine that is busy with other work. Tests wait for conditions, each for at most `patience`, so that a
 * timeout names the condition.
 */
const limits = {
  testTimeout: 3 * waitLimits.timeout,
  hookTimeout: 3 * waitLimits.timeout,
  expect: { poll: { timeout: waitLimits.timeout } },
  // For `npm run record:release`.
  setupFiles: process.env.RECORD_STATEMENTS ? ['test/upgrades/recording.ts'] : [],
  // Print whole values in assertion errors.
  chaiConfig: { truncateThreshold: 2000 },
}

const inProcess =
  'test/{unit,domain,maintenance,contract,operations,storage,upgrades,generate,contract-checks,samples,dashboard,docs,client,simulator}'
const startingProcesses = 'test/{e2e,worker,browser,check,commands,faults,consumers}'

const throughPrism = '{first-key.test,{examples,examples-browser,journeys,limits,roles,tracing}.slow.test}'

/** By the set in which they run. */
const onPostgres = {
  slow: ['test/operations/**/!(*.slow|*.release).test.ts', 'test/e2e/!(*.slow|*.release).test.ts'],
  release: [
    'test/{operations,e2e}/**/*.{slow,release}.test.ts',
    'test/worker/remote-{browser,worker}.slow.test.ts',
    'test/faults/rolling-restart.slow.test.ts',
  ],
}

export default defineConfig({
  test: {
    // More workers than cores: many tests wait for processes and clocks.
    maxWorkers: 4,
    // The temporary directories of the run; one PostgreSQL for all projects, started when the first test asks for a database; the table of fault tests' figures.
    globalSetup: [
      'test/support/temporary-directories.ts',
      'test/support/postgres-databases.ts',
      'test/faults/print-figures.ts',
    ],
    projects: [
      {
        test: {
          ...limits,
          name: 'in-process',
          ...files(`${inProcess}/**/*`),
          env: { TMPDIR: fastTemporaryDirectory() },
          // One process for all files of a worker: loading the service for each file takes a third of the time.
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          name: 'processes',
          ...files(`${startingProcesses}/**/*`),
          isolate: false,
        },
      },
      {
        test: {
          ...limits,
          // The same guarantees on PostgreSQL, for tests that take their store from the environment.
          name: 'postgres',
          include: {
            quick: [],
            slow: onPostgres.slow,
            release: onPostgres.release,
            all: [...onPostgres.slow, ...onPostgres.release],
            reliability: [...onPostgres.slow, ...onPostgres.release],
          }[testSet],
          // These use no store, or choose one themselves.
          exclude: ['test/e2e/{browser,demo,draining,refused-start,prism}.slow.test.ts', timed],
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
          include: ['quick', 'slow'].includes(testSet) ? [] : [`test/e2e/${throughPrism}.ts`],
          env: { THROUGH_PRISM: '1' },
        },
      },
    ],
  },
})
