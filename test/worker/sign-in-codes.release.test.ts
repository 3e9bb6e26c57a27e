/** One-time codes in executors: no two attempts that sign a browser context in get the same one. */
import { readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import type { Run } from '../../src/domain/runs/run.ts'
import { newDirectory } from '../support/domain.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { stores } from '../support/store-kinds.ts'
import { moduleText, openInstallation, startWorkerProcess, waitForRun, writeModules } from '../support/worker.ts'

/** Notes its code. The first attempt waits for its end, and the others fail. */
const workflow = moduleText(
  'sign-in',
  `browser: true, signsIn: true, retry: { maxAttempts: 2, backoffSeconds: 0 },
  run: async ({ totp, variables: { file } }) => {
    const { appendFileSync, readFileSync } = await import('node:fs')
    const code = await totp()
    appendFileSync(file, code + '\\n')
    const codes = readFileSync(file, 'utf8').trim().split('\\n').length
    if (codes === 1) await new Promise((resolve) => setTimeout(resolve, 600000))
    throw new Error('The site has failed.')
  }`,
)

describe.each(stores)('on $name', (kind) => {
  test('attempts get different codes, after a failure and after the kill of their worker', {
    timeout: 300_000,
  }, async (test) => {
    const snapshot = await snapshotOf(await writeModules(test, { 'sign-in.ts': workflow }))
    const { domain, principal, file } = await openInstallation(test, kind, snapshot)
    const { accountId } = principal
    const { id: contextId } = (await domain.browserContexts.create(accountId, 'Shop')) ?? expect.fail('no context')
    const codes = file('codes')
    const given = { workflowId: 'sign-in', variables: { file: codes }, totpSeed: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }
    expect(await domain.signIns.set(accountId, contextId, given, operator)).toMatchObject({ kind: 'set' })
    const started = await domain.signIns.signInNow(accountId, contextId, operator)
    if (started.kind !== 'started') return expect.fail(started.kind)
    const readCodes = () => readFileSync(codes, 'utf8').trim().split('\n')
    const isPostgres = kind.name === 'postgres'
    const changes = isPostgres ? { DATABASE_URL: domain.location, DATA_DIR: await newDirectory(test) } : {}
    const worker = await startWorkerProcess(test, domain, changes)
    await vi.waitUntil(() => tryRead(readCodes), { timeout: 120_000 })
    worker.kill('SIGKILL')
    await startWorkerProcess(test, domain, changes)
    const run = { accountId, id: started.runId } as Run
    const ended = await waitForRun(domain, run, { timeout: 240_000, interval: 50 })
    expect(ended).toMatchObject({ status: 'failed', attempts: 3 })
    const all = readCodes()
    expect(all).toHaveLength(3)
    expect(new Set(all).size).toBe(3)
  })
})

function tryRead(read: () => string[]): boolean {
  try {
    return read().length > 0
  } catch {
    return false
  }
}
