/** What the service promises, each with the tests that prove it: what docs/reliability.md is written from. */

export interface Promised {
  /** `P1` to `P16`. */
  id: string
  sentence: string
  /** The long ones, of `npm run test:faults`, which also runs small ones that are about callers on PostgreSQL. */
  faults: string[]
  /** Their smaller versions, of `npm test`. */
  small: string[]
}

const fault = (name: string) => `test/faults/promises/${name}.test.ts`

export const promises: readonly Promised[] = [
  {
    id: 'P1',
    sentence: 'A run that was answered with 202 survives kill -9 of every process, and a power cut.',
    faults: [fault('kept-after-kill'), fault('kept-after-power-cut'), fault('database-lost')],
    small: ['test/e2e/service.test.ts', 'test/storage/store.test.ts'],
  },
  {
    id: 'P2',
    sentence: 'The fsync of a run has returned before its 202 is written to the connection.',
    faults: [fault('sync-before-answer')],
    small: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'P3',
    sentence:
      'A full disk and an I/O error are answered with 503, never with a 202 that is not true, and the service recovers by itself.',
    faults: [fault('refused-when-not-durable'), fault('database-lost')],
    small: ['test/storage/sqlite.test.ts', 'test/worker/lease.test.ts'],
  },
  {
    id: 'P4',
    sentence:
      '`SIGTERM` drains: readiness turns 503, requests in flight finish, running attempts finish or are handed back, nothing acknowledged is lost, and no connection is reset.',
    faults: ['test/faults/rolling-restart.test.ts'],
    small: ['test/e2e/draining.test.ts', 'test/e2e/service.test.ts', 'test/worker/ending.test.ts'],
  },
  {
    id: 'P5',
    sentence: 'A run completes exactly once; an attempt of it may start more than once.',
    faults: [fault('completes-once'), fault('kept-after-kill')],
    small: ['test/worker/processes.test.ts', 'test/worker/lease.test.ts', 'test/storage/attempts.test.ts'],
  },
  {
    id: 'P6',
    sentence: "A dead worker's runs are running again within 30 s.",
    faults: [fault('completes-once')],
    small: ['test/worker/processes.test.ts'],
  },
  {
    id: 'P7',
    sentence: 'One Idempotency-Key makes one run.',
    faults: [fault('one-run-per-key')],
    small: ['test/storage/runs.test.ts', 'test/operations/queueRemoteRun.test.ts'],
  },
  {
    id: 'P8',
    sentence: 'A deleted key is refused by every process from the moment in which the deletion has answered.',
    faults: [fault('deleted-key')],
    small: ['test/storage/api-keys.test.ts'],
  },
  {
    id: 'P9',
    sentence: 'There are never more than 5 keys held by a user, nor more than 5 active in an account.',
    faults: [fault('five-keys')],
    small: ['test/storage/api-keys.test.ts'],
  },
  {
    id: 'P10',
    sentence: 'A key that has expired stays dead, also when the clock steps back.',
    faults: [fault('expired-key')],
    small: ['test/storage/api-keys.test.ts'],
  },
  {
    id: 'P11',
    sentence: "A key's value and a context's cookies appear nowhere but in the one answer that returns them.",
    faults: [fault('secrets-nowhere'), 'test/faults/browsing.test.ts'],
    small: ['test/operations/secrets.test.ts', 'test/storage/secrets.test.ts'],
  },
  {
    id: 'P12',
    sentence: "One account never sees or touches another's.",
    faults: [],
    small: ['test/operations/two-accounts.test.ts'],
  },
  {
    id: 'P13',
    sentence: 'No input causes a 500, a hang or an undocumented answer.',
    faults: [],
    small: [
      'test/operations/fuzz.test.ts',
      'test/operations/bad-body.test.ts',
      'test/operations/bad-http.test.ts',
      'test/operations/bad-parameters.test.ts',
    ],
  },
  {
    id: 'P14',
    sentence:
      'A workflow that blocks its thread, leaks, throws or exits takes down neither the API nor its neighbours.',
    faults: [fault('misbehaving-workflows')],
    small: ['test/worker/worker.test.ts', 'test/worker/loading.test.ts'],
  },
  {
    id: 'P15',
    sentence: 'Slow and idle connections are cut: headers after 10 s, requests after 20 s.',
    faults: [fault('slow-clients')],
    small: ['test/contract/listener.test.ts'],
  },
  {
    id: 'P16',
    sentence: 'Nothing of one browser context is visible in another.',
    faults: ['test/faults/doctor.test.ts', 'test/faults/browsing.test.ts'],
    small: ['test/e2e/examples-browser.test.ts'],
  },
]
