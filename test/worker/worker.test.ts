/** A worker executes runs, reports their events, and isolates them from each other. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import type { Run } from '../../src/domain/runs/run.ts'
import { newAccount, queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { describeEvents, openInstallation, startWorker, waitForRun, waitForStart } from '../support/worker.ts'

describe.concurrent('a worker', () => {
  test('executes a run, and reports its events in order', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'talk' })
    const ended = await waitForRun(domain, run)
    const result = { status: 'succeeded', reason: null, output: { said: 'Hello!' }, error: null, attempts: 1 }
    expect(ended).toMatchObject({ ...result, workflowVersion: '1.2.3', progress: { percent: 100, message: null } })
    expect(ended.startedAt).toBeGreaterThanOrEqual(run.createdAt)
    expect(ended.finishedAt).toBeGreaterThanOrEqual(ended.startedAt ?? Number.POSITIVE_INFINITY)
    expect(await describeEvents(domain, run)).toEqual([
      'queued (0)',
      'running (1)',
      'info: Hello from log',
      'error: and from the console { at: 1 }',
      '50 %: half way',
      'step speak started',
      'step speak finished',
      'warn: that was all',
      '100 %: null',
      'succeeded (1)',
    ])
  })

  test('adds output that bypasses the console to the log of the run', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    for (let round = 0; round < 20; round += 1) {
      const run = await queueRun(domain, principal, { workflowId: 'write-past-the-console' })
      await waitForRun(domain, run)
      const lines = await describeEvents(domain, run)
      expect(lines).toContain('info: on standard output')
      expect(lines).toContain('warn: on standard error')
    }
  })

  test('starts a run when it is notified, without polling', async (test) => {
    const { domain, principal } = await openInstallation(test)
    // This store sends no notification on a timer: without the wake-up, the worker would not claim.
    await startWorker(test, domain)
    for (let round = 0; round < 3; round += 1) {
      const run = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded' })
    }
  })

  test('starts a delayed run when its delay ends', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'talk', delaySeconds: 1 })
    const { startedAt, availableAt } = await waitForRun(domain, run)
    expect(startedAt).toBeGreaterThanOrEqual(availableAt ?? Number.POSITIVE_INFINITY)
  })

  test('executes earlier runs after its start, never more at a time than it has slots', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const until = file('until')
    const variables = (index: number) => ({ started: file(`started ${index}`), until })
    const runs = []
    for (let index = 0; index < 3; index += 1) {
      runs.push(await queueRun(domain, principal, { workflowId: 'wait', variables: variables(index) }))
    }
    await startWorker(test, domain, { slots: 2 })
    await Promise.all([waitForStart(file('started 0')), waitForStart(file('started 1'))])
    const [, , third] = runs
    expect(await domain.runs.get(principal.accountId, third?.id ?? '')).toMatchObject({ status: 'queued' })
    expect(existsSync(file('started 2'))).toBe(false)
    writeFileSync(until, '')
    for (const run of runs) expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded' })
  })

  test('reuses an executor in which the previous run has left nothing', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    await startWorker(test, domain, { slots: 1 })
    const pids: number[] = []
    for (const name of ['first', 'second', 'third']) {
      const variables = { started: file(name), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      pids.push(await waitForStart(variables.started))
      writeFileSync(variables.until, '')
      await waitForRun(domain, run)
    }
    expect(new Set(pids).size).toBe(1)
  })

  test('executes several short runs of an account in one process, while other accounts wait', async (test) => {
    const { domain } = await openInstallation(test)
    const runs: Run[] = []
    for (let account = 0; account < 6; account += 1) {
      const { principal } = await newAccount(domain)
      const request = { workflowId: 'remember', variables: { secret: 'x' } }
      for (let count = 0; count < 5; count += 1) runs.push(await queueRun(domain, principal, request))
    }
    await startWorker(test, domain, { slots: 1 })
    const outputs = await Promise.all(runs.map(async (run) => (await waitForRun(domain, run)).output))
    const processes = new Set(outputs.map((output) => (output as { pid: number }).pid))
    // Each run would have a process if the accounts alternated: more of them wait than the worker keeps processes.
    expect(processes.size).toBeLessThanOrEqual(runs.length / 2)
  })

  test.for(['U+0000 \0', 'half of a pair \ud83d'])(
    'rejects a step with %j in its name, with an error for the workflow',
    async (name, test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const run = await queueRun(domain, principal, { workflowId: 'steps', variables: { file: file('count'), name } })
      const error = { message: expect.stringContaining('The name of a step must be a text of 1 to 200 characters') }
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'failed', reason: 'workflowFailed', error })
    },
  )

  test('executes a run that starts from a step without the steps before it, whose results it gets', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    await startWorker(test, domain)
    const variables = { file: file('count'), failures: 3 }
    const failed = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'steps', variables }))
    expect(readFileSync(variables.file, 'utf8')).toBe('first 1\n')
    const corrected = { ...variables, failures: 0 }
    const start = await domain.runs.readStart(failed, 'nothing', principal, corrected)
    if ('refused' in start) throw new Error(start.refused)
    const again = { workflowId: 'steps', variables: corrected, rerunOf: failed.id, start }
    const run = await queueRun(domain, principal, again)
    const output = { first: { madeBy: 1 }, second: 1 }
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1, output })
    expect(readFileSync(variables.file, 'utf8')).toBe('first 1\nsecond 1\n')
    expect((await describeEvents(domain, run)).filter((line) => line.startsWith('step'))).toEqual([
      'step constructor reused',
      'step nothing started',
      'step nothing finished',
      'step second started',
      'step second finished',
    ])
  })

  describe('when an attempt fails', () => {
    test('retries as often as the policy allows, and reports the last error', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { file: file('count'), failures: 3 }
      const run = await queueRun(domain, principal, { workflowId: 'steps', variables })
      const failed = { status: 'failed', reason: 'workflowFailed', attempts: 3, output: null }
      const error = { name: 'RangeError', message: 'Attempt 3 fails.' }
      expect(await waitForRun(domain, run)).toMatchObject({ ...failed, error })
    })

    test('does not repeat finished steps', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { file: file('count'), failures: 2 }
      const run = await queueRun(domain, principal, { workflowId: 'steps', variables })
      const output = { first: { madeBy: 1 }, second: 3 }
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 3, output, error: null })
      expect(readFileSync(variables.file, 'utf8')).toBe('first 1\nsecond 3\n')
      expect((await describeEvents(domain, run)).filter((line) => /^step|queued|running/.test(line))).toEqual([
        'queued (0)',
        'running (1)',
        'step constructor started',
        'step constructor finished',
        'step nothing started',
        'step nothing finished',
        'queued (1, attemptFailed)',
        'running (2)',
        'step constructor reused',
        'step nothing reused',
        'queued (2, attemptFailed)',
        'running (3)',
        'step constructor reused',
        'step nothing reused',
        'step second started',
        'step second finished',
      ])
    })

    test('names the invalid member of the output', async (test) => {
      const { domain, principal } = await openInstallation(test)
      await startWorker(test, domain)
      const run = await queueRun(domain, principal, { workflowId: 'invalid-output' })
      const message = 'The output does not match its schema: /words/1/count must be integer'
      const failed = {
        status: 'failed',
        reason: 'outputInvalid',
        output: null,
        error: { name: 'OutputInvalid', message },
      }
      expect(await waitForRun(domain, run)).toMatchObject(failed)
    })

    test.for([
      ['throwNoError', 'workflowFailed', 'Error', '{ code: 7 }'],
      [
        'returnNoJson',
        'outputInvalid',
        'OutputInvalid',
        'The output is not JSON: Do not know how to serialize a BigInt',
      ],
    ] as const)(
      'reports a thrown value that is no error, or an output that is not JSON (%s)',
      async ([how, reason, name, message], test) => {
        const { domain, principal } = await openInstallation(test)
        await startWorker(test, domain)
        const run = await queueRun(domain, principal, { workflowId: 'misbehave', variables: { how } })
        expect(await waitForRun(domain, run)).toMatchObject({ status: 'failed', reason, error: { name, message } })
      },
    )
  })

  describe('isolates from other runs a run that', () => {
    const neighbour = async (
      test: Parameters<typeof openInstallation>[0],
      run: { workflowId: string; variables: object },
    ) => {
      const { domain, principal, file } = await openInstallation(test)
      const { fatal } = await startWorker(test, domain)
      const variables = { started: file('started'), until: file('until') }
      const otherRun = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await waitForStart(variables.started)
      const bad = await queueRun(domain, principal, { workflowId: run.workflowId, variables: { ...run.variables } })
      const ended = await waitForRun(domain, bad)
      writeFileSync(variables.until, '')
      expect(await waitForRun(domain, otherRun)).toMatchObject({ status: 'succeeded', attempts: 1 })
      const next = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await waitForRun(domain, next)).toMatchObject({ status: 'succeeded', attempts: 1 })
      expect(fatal).toEqual([])
      return ended
    }

    test.for<[string, string, string]>([
      ['exit', 'ProcessExit', "The workflow's process exited with code 0."],
      ['throwLater', 'Error', 'Uncaught: thrown when unhandled'],
      ['rejectUnhandled', 'Error', 'Uncaught: rejected when unhandled'],
      ['exhaust', 'HeapLimit', 'The workflow reached the heap limit of 64 MB, which WORKFLOW_MEMORY_MB sets.'],
      ['closeChannel', 'ProcessKilled', expect.stringContaining('was killed by SIGKILL')],
      [
        'writeToChannel',
        'InvalidMessage',
        "The workflow's process wrote an invalid message to its worker and was ended.",
      ],
      ['allocate', 'MemoryLimit', expect.stringMatching(/used \d+ MB of memory; WORKFLOW_MEMORY_MB allows 64/)],
    ])('ends its process or must be ended (%s)', async ([how, name, message], test) => {
      const ended = await neighbour(test, { workflowId: 'misbehave', variables: { how } })
      const error = { name, message }
      expect(ended).toMatchObject({ status: 'failed', reason: 'workflowExited', output: null, error })
    })

    test.for([true, false])('exceeds its time limit (blocking its thread: %s)', async (blocking, test) => {
      const ended = await neighbour(test, { workflowId: 'limited', variables: { blocking } })
      expect(ended).toMatchObject({ status: 'timedOut', reason: 'timeLimit', output: null, attempts: 1 })
    })

    test('leaves code running', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { slots: 1 })
      const variables = { how: 'leaveBehind', file: file('left') }
      const leavingCode = await queueRun(domain, principal, { workflowId: 'misbehave', variables })
      expect(await waitForRun(domain, leavingCode)).toMatchObject({ status: 'succeeded', output: 'gone' })
      const waiting = { started: file('started'), until: file('until') }
      const next = await queueRun(domain, principal, { workflowId: 'wait', variables: waiting })
      const pid = await waitForStart(waiting.started)
      writeFileSync(waiting.until, '')
      await waitForRun(domain, next)
      expect(await describeEvents(domain, next)).toEqual([
        'queued (0)',
        'running (1)',
        'info: attempt 1 waits',
        'succeeded (1)',
      ])
      // Its process was replaced.
      const linesWritten = existsSync(variables.file) ? readFileSync(variables.file, 'utf8').split('\n') : []
      expect(linesWritten).not.toContain(String(pid))
      for (const each of new Set(linesWritten.filter(Boolean))) await waitForProcessEnd(Number(each))
    })
  })

  test('accepts at most 100 artifacts per attempt, including replacements', async (test) => {
    const writes = "await Promise.allSettled(Array.from({ length: 101 }, (_, index) => artifact('a', `${index}`)))"
    const members = `run: async ({ artifact }) => (${writes}).flatMap(({ reason }) => reason ? [reason.message] : [])`
    const snapshot = writtenSnapshot({ write: { module: `export default { ${members} }` } })
    const { domain, principal } = await openInstallation(test, sqlite, snapshot)
    await startWorker(test, domain)
    const run = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'write' }))
    expect(run.output).toEqual(['An attempt may write artifacts 100 times, including replacements.'])
    expect(run.artifacts).toMatchObject([{ name: 'a', sizeBytes: 2 }])
  })

  test('refuses an artifact of an account that has reached its storage quota', async (test) => {
    const write = (name: string) => `artifact('${name}', 'x'.repeat(1024 * 1024))`
    const members = `run: async ({ artifact }) => { await ${write('a')}; await ${write('b')} }`
    const snapshot = writtenSnapshot({ write: { module: `export default { ${members} }` } })
    const { domain, principal } = await openInstallation(test, sqlite, snapshot)
    await startWorker(test, domain, { storageQuotaMegabytes: 1 })
    const run = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'write' }))
    const message =
      'This account has reached its storage quota of 1 MB. Delete runs, files or browser contexts, or wait until their retention ends. The artifact was not stored.'
    expect(run).toMatchObject({ status: 'failed', error: { message }, artifacts: [{ name: 'a' }] })
  })

  test('gives a workflow its secrets, masks them everywhere, and exposes no key of the service', async (test) => {
    const { domain, principal } = await openInstallation(test)
    for (const name of ['ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS', 'DATABASE_URL', 'BROWSER_CDP_URL']) {
      vi.stubEnv(name, 'x')
    }
    test.onTestFinished(() => void vi.unstubAllEnvs())
    await startWorker(test, domain)
    const password = 'canary "of" a pass/word'
    const run = await queueRun(domain, principal, { workflowId: 'leak', variables: { login: { password } } })
    const failing = { login: { password }, fail: true }
    const failed = await queueRun(domain, principal, { workflowId: 'leak', variables: failing })
    const output = { length: password.length, reversed: [...password].reverse().join(''), '********': ['********'] }
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', output: { ...output, environment: [] } })
    const error = { name: 'Error', message: '******** was refused' }
    expect(await waitForRun(domain, failed)).toMatchObject({ status: 'failed', error })
    for (const each of [run, failed]) {
      const lines = await describeEvents(domain, each)
      expect(lines).toContain('info: The password is ********.')
      expect(lines).toContain('10 %: ********')
      expect(lines).toContain('step step ******** finished')
      expect(lines).toContain(`info: {"login":{"password":"********"},"fail":${each === failed}}`)
      expect(lines.join('\n')).not.toMatch(/canary|pass\/word/)
      expect(JSON.stringify(await domain.runs.get(principal.accountId, each.id))).not.toMatch(/canary|pass\/word/)
    }
  })
})
