/** A user for each account (`EXECUTOR_UIDS`): what the runs of one can reach of another's. Needs root. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildSnapshot } from '../../src/domain/deployments/build-snapshot.ts'
import { DeploymentFiles } from '../../src/domain/deployments/deployment-files.ts'
import { ExecutorUsers, leaseBuilder } from '../../src/domain/workflows/executor-users.ts'
import { newAccount, newDirectory, queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { until } from '../support/service.ts'
import { describeEvents, openInstallation, startWorkerProcess, waitForRun } from '../support/worker.ts'

// Each test has its own range, since the leases are those of the machine.
describe.runIf(process.getuid?.() === 0)('users of accounts', () => {
  test('an account reaches neither processes nor files of another on the same worker', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorkerProcess(test, domain, { EXECUTOR_UIDS: '61300-61309' })
    const { principal: other } = await newAccount(domain)
    const victim = await queueRun(domain, principal, { workflowId: 'neighbour', variables: {} })
    const [, pid = 0, directory = '', uid] = await until('it waits', async () => {
      const events = await describeEvents(domain, victim)
      return /info: (\d+) (\S+) (\d+)/.exec(events.join('\n'))
    })
    const look = async (by: typeof other) => {
      const run = await queueRun(domain, by, { workflowId: 'neighbour', variables: { pid: Number(pid), directory } })
      return (await waitForRun(domain, run)).output
    }
    const refused = {
      environment: 'EACCES',
      memory: 'EACCES',
      signal: 'EPERM',
      list: 'EACCES',
      file: 'EACCES',
      mode: '700',
    }
    expect(await look(other)).toEqual({ ...refused, uid: expect.any(Number) })
    // The victim's own account does: what is refused depends on the account alone.
    expect(await look(principal)).toMatchObject({ file: 'a secret', uid: Number(uid) })
    expect(Number(uid)).toBeGreaterThan(61300)
  })

  test('only processes of a deployment can read its files', async (test) => {
    const users = new ExecutorUsers({ first: 61310, last: 61319 })
    test.onTestFinished(() => users.close())
    const files = new DeploymentFiles({ uid: 61310, gid: 61310 }, 'deployments', users)
    test.onTestFinished(() => files.close())
    const content = { directory: null, externals: [], files: [{ path: 'a/module.js', content: 'a secret' }] }
    const [own, foreign] = [await files.write('own', content, []), await files.write('foreign', content, [])]
    const read = (gid: number, path: string) => spawnSync('cat', [path], { uid: 61311, gid, encoding: 'utf8' }).stdout
    const gid = statSync(own).gid
    expect(read(gid, join(own, 'a/module.js'))).toBe('a secret')
    expect(read(gid, join(foreign, 'a/module.js'))).toBe('')
    expect(spawnSync('ls', [join(own, '..')], { uid: 61311, gid, encoding: 'utf8' }).stdout).toBe('')
  })

  test('no two workers of a machine lease a user to two accounts, and an account keeps its own', (test) => {
    const [one, two] = [1, 2].map(() => new ExecutorUsers({ first: 61320, last: 61323 })) as [
      ExecutorUsers,
      ExecutorUsers,
    ]
    test.onTestFinished(() => {
      for (const each of [one, two]) each.close()
    })
    const always = () => true
    const uids = [one.user('a', always), two.user('b', always), one.user('c', always)].map((user) => user?.uid)
    expect(new Set(uids)).toEqual(new Set([61321, 61322, 61323]))
    expect(one.user('a', always)?.uid).toBe(uids[0])
    expect([one.user('d', always), two.user('d', always)]).toEqual([undefined, undefined])
    // The user of an account without processes may be given to another.
    expect(one.user('d', (account) => account !== 'c')?.uid).toBe(uids[2])
    two.close()
    expect(one.user('c', always)?.uid).toBe(uids[1])
  })

  test('a user is given to another account without processes and files of the former', async (test) => {
    const users = new ExecutorUsers({ first: 61330, last: 61332 })
    test.onTestFinished(() => users.close())
    const former = users.user('a', () => true)
    if (!former) throw new Error('A user is free.')
    users.user('other', () => true)
    const { uid, directory } = former
    const left = spawn('/bin/sleep', ['1000'], { uid, gid: uid, detached: true, stdio: 'ignore' })
    await once(left, 'spawn')
    const file = join(tmpdir(), `left-by-${uid}`)
    writeFileSync(file, 'a secret')
    chownSync(file, uid, uid)
    const next = users.user('b', (account) => account !== 'a')
    expect(next?.uid).toBe(uid)
    await waitForProcessEnd(left.pid ?? 0)
    expect([existsSync(file), existsSync(directory)]).toEqual([false, false])
  })

  test('each build has a user of its own, and leaves neither processes nor files', async () => {
    const range = { first: 61350, last: 61352 }
    const [one, other] = [1, 2].map(() => leaseBuilder({ uid: 61350, gid: 61350, range }))
    const uid = one?.identity?.uid ?? 0
    expect(new Set([61350, uid, other?.identity?.uid]).size).toBe(3)
    const left = spawn('/bin/sleep', ['1000'], { ...one?.identity, env: {}, detached: true, stdio: 'ignore' })
    await once(left, 'spawn')
    const file = join(tmpdir(), `left-by-${uid}`)
    writeFileSync(file, 'a secret')
    chownSync(file, uid, uid)
    one?.release()
    await waitForProcessEnd(left.pid ?? 0)
    expect(existsSync(file)).toBe(false)
    const users = new ExecutorUsers(range)
    expect(users.user('a', () => true)?.uid).not.toBe(other?.identity?.uid)
    expect(users.user('b', () => true)).toBe(undefined)
    other?.release()
    expect(users.user('b', () => true)?.uid).toBe(other?.identity?.uid)
    users.close()
  })

  test('a build runs as a user of the range, without its debugger', async (test) => {
    const range = { first: 61360, last: 61363 }
    const directory = await newDirectory(test)
    const looks = "import { readFileSync } from 'node:fs'\nconst status = readFileSync('/proc/self/status', 'utf8')\n"
    const title = '`${process.getuid()} ${/^NoNewPrivs:\\t(\\d)/m.exec(status)[1]} ${process.execArgv}`'
    const module = `${looks}export default { id: 'look', version: '1.0.0', title: ${title}, variables: { type: 'object' }, output: {}, run: () => null }\n`
    writeFileSync(join(directory, 'look.js'), module)
    chmodSync(directory, 0o755)
    const { workflows } = await buildSnapshot(directory, { identity: { uid: 61360, gid: 61360, range } })
    expect(workflows[0]?.title).toBe('61363 1 --disable-sigusr1')
  })

  test('what a killed worker has left is removed at the start of a worker, unless another one leases the user', (test) => {
    const range = { first: 61340, last: 61343 }
    const running = new ExecutorUsers(range)
    test.onTestFinished(() => running.close())
    const leased = running.user('a', () => true)?.directory ?? ''
    const left = mkdtempSync(join(tmpdir(), 'left-'))
    chownSync(left, 61343, 61343)
    new ExecutorUsers(range).close()
    expect([existsSync(left), existsSync(leased)]).toEqual([false, true])
  })
})
