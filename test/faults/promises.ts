/** The service's promises, each with the tests that verify it. `docs/reliability.md` is generated from this list. */

export interface Promised {
  /** `P1` to `P28`. */
  id: string
  sentence: string
  /** Tests with faults, of the slow set or of those before a release. Empty when only the others exist; these also run on PostgreSQL. */
  faults: string[]
  /** Tests without such faults; most are part of `npm test`. */
  others: string[]
}

const fault = (name: string, suffix: 'slow' | 'release' | 'timed' = 'slow') =>
  `test/faults/promises/${name}.${suffix}.test.ts`

export const promises: readonly Promised[] = [
  {
    id: 'P1',
    sentence: 'A run acknowledged with 202 survives kill -9 of every process, and a power cut.',
    faults: [fault('kept-after-kill'), fault('kept-after-power-cut'), fault('database-lost')],
    others: ['test/e2e/service.test.ts', 'test/storage/store.test.ts'],
  },
  {
    id: 'P2',
    sentence: 'A run is synced to disk before its 202 is sent.',
    faults: [fault('sync-before-response')],
    others: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'P3',
    sentence: 'A full disk or an I/O error causes 503, never a false 202, and the service recovers by itself.',
    faults: [fault('refused-when-not-durable'), fault('database-lost')],
    others: ['test/storage/sqlite.test.ts', 'test/worker/lease.test.ts'],
  },
  {
    id: 'P4',
    sentence:
      '`SIGTERM` drains: readiness turns 503, requests in flight finish, running attempts finish or return to the queue, nothing acknowledged is lost, and no connection is reset.',
    faults: ['test/faults/rolling-restart.slow.test.ts'],
    others: ['test/e2e/draining.slow.test.ts', 'test/e2e/service.test.ts', 'test/worker/ending.test.ts'],
  },
  {
    id: 'P5',
    sentence: 'A run completes exactly once, even if an attempt starts more than once.',
    faults: [fault('completes-once'), fault('killed-batches', 'release'), fault('kept-after-kill')],
    others: ['test/worker/processes.slow.test.ts', 'test/worker/lease.test.ts', 'test/domain/queue/attempts.test.ts'],
  },
  {
    id: 'P6',
    sentence: "A dead worker's runs are running again within 30 s.",
    faults: [fault('completes-once')],
    others: ['test/worker/processes.slow.test.ts'],
  },
  {
    id: 'P7',
    sentence: 'Requests with the same Idempotency-Key queue one run.',
    faults: [fault('one-run-per-key')],
    others: ['test/domain/run-api/runs.test.ts', 'test/operations/queueRemoteRun.test.ts'],
  },
  {
    id: 'P8',
    sentence: 'Once a key is deleted, every process refuses it.',
    faults: [fault('deleted-key')],
    others: ['test/domain/api-keys/api-keys.test.ts'],
  },
  {
    id: 'P9',
    sentence: 'A user never has more than 5 keys, and an account never more than 5 active keys.',
    faults: [fault('five-keys')],
    others: ['test/domain/api-keys/api-keys.test.ts'],
  },
  {
    id: 'P10',
    sentence: 'An expired key stays expired, even if the clock steps back.',
    faults: [fault('expired-key')],
    others: ['test/domain/api-keys/api-keys.test.ts'],
  },
  {
    id: 'P11',
    sentence: "A key's value and a context's cookies appear only in the one response that returns them.",
    faults: [fault('secrets-nowhere'), 'test/faults/browsing.slow.test.ts'],
    others: ['test/operations/secrets.slow.test.ts', 'test/domain/workflows/secrets.test.ts'],
  },
  {
    id: 'P12',
    sentence: "An account never sees or changes another account's data.",
    faults: [],
    others: ['test/operations/two-accounts.slow.test.ts'],
  },
  {
    id: 'P13',
    sentence: 'No input causes a 500, a hang or an undocumented response.',
    faults: [],
    others: [
      'test/operations/fuzz.release.test.ts',
      'test/operations/invalid-body.test.ts',
      'test/operations/invalid-http.test.ts',
      'test/operations/invalid-parameters.test.ts',
    ],
  },
  {
    id: 'P14',
    sentence: 'A workflow that blocks its thread, leaks, throws or exits affects neither the API nor other runs.',
    faults: [fault('misbehaving-workflows')],
    others: ['test/worker/worker.test.ts', 'test/worker/deployments.slow.test.ts'],
  },
  {
    id: 'P15',
    sentence: 'Slow and idle connections are closed: headers after 10 s, requests after 20 s.',
    faults: [fault('slow-clients')],
    others: ['test/contract/listener.test.ts'],
  },
  {
    id: 'P16',
    sentence: 'A browser context never sees data of another.',
    faults: ['test/faults/doctor.slow.test.ts', 'test/faults/browsing.slow.test.ts'],
    others: ['test/e2e/examples-browser.slow.test.ts'],
  },
  {
    id: 'P17',
    sentence: 'A run is executed by the deployment that validated it, on every attempt, whatever is deployed since.',
    faults: [fault('executed-as-deployed', 'release')],
    others: ['test/worker/deployments.slow.test.ts', 'test/domain/deployments/deployments.test.ts'],
  },
  {
    id: 'P18',
    sentence:
      'Each time of a schedule makes exactly one run, with any number of processes, through kills and clocks that jump.',
    faults: [fault('scheduled-once', 'release')],
    others: ['test/domain/schedules/schedules.test.ts', 'test/domain/schedules/schedule-times.test.ts'],
  },
  {
    id: 'P19',
    sentence:
      'The event of each run that ends is delivered to each matching webhook endpoint, at least once and signed. No event is invented, and an endpoint that does not respond delays no other account.',
    faults: [fault('delivered-webhooks', 'release')],
    others: ['test/domain/webhooks/webhooks.test.ts', 'test/dashboard/webhooks.test.ts'],
  },
  {
    id: 'P20',
    sentence: "One account's requests, data and workflows neither slow down another account nor exhaust the memory.",
    faults: [fault('neighbours', 'timed'), fault('floods', 'timed'), fault('soak', 'timed')],
    others: [
      'test/contract/tenant-limits.test.ts',
      'test/domain/run-api/run-list.test.ts',
      'test/domain/queue/fair-scheduling.test.ts',
    ],
  },
  {
    id: 'P21',
    sentence:
      'An answer to a wait that got 200 resumes its run exactly once. No answer is invented, and a sleep ends once.',
    faults: [fault('answered-once', 'release')],
    others: ['test/worker/suspended-runs.slow.test.ts', 'test/operations/completeWait.test.ts'],
  },
  {
    id: 'P22',
    sentence:
      'Runs that workers outside of the service execute end once, with the results that their steps had, while connections break and processes are killed.',
    faults: [fault('remote-workers', 'release'), 'test/worker/remote-worker-faults.release.test.ts'],
    others: ['test/operations/remote-workers.test.ts', 'test/operations/worker-faults.test.ts'],
  },
  {
    id: 'P23',
    sentence: 'A lost session of a browser context is healed by one run that signs in, and costs no run its success.',
    faults: [fault('healed-sign-ins', 'release')],
    others: ['test/domain/browser-contexts/sign-ins.test.ts', 'test/worker/run-workflow-sign-ins.test.ts'],
  },
  {
    id: 'P24',
    sentence: 'A new version starts beside the one before it: nothing is refused, lost or misread meanwhile.',
    faults: [fault('upgraded', 'release')],
    others: ['test/storage/migrations.slow.test.ts', 'test/upgrades/released-statements.test.ts'],
  },
  {
    id: 'P28',
    sentence: "What one account's schemas cost stalls no other account.",
    faults: [fault('neighbours', 'timed')],
    others: [
      'test/domain/workflows/schema-costs.test.ts',
      'test/domain/deployments/costly-comparisons.test.ts',
      'test/domain/fair-runner.test.ts',
      'test/maintenance/remote-workflows.test.ts',
    ],
  },
]
