/** Runs several processes of the service on one store, for tests that kill, pause and starve them. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import type { Store } from '../../src/storage/store.ts'
import type { Test } from './domain.ts'
import type { FleetStorage, FleetStore } from './fleet-stores.ts'
import { capture, cleanEnvironment, type Exit, parseAddresses, waitForExit } from './installation.ts'
import {
  type Addresses,
  type Environment,
  main,
  openAdministration,
  serviceSettings,
  type TestAccount,
} from './service.ts'
import { waitLimits } from './timeouts.ts'

const python = fileURLToPath(new URL('../../clients/python/src', import.meta.url))
const workflows = fileURLToPath(new URL('../faults/promises/workflows', import.meta.url))

/** A process of the service with its children, in a separate process group. */
export interface Member {
  pid: number
  output(): string
  /** Counts log lines with this message. */
  logged(msg: string): number
  ended: Promise<Exit>
  hasEnded(): boolean
  /** Sends a signal to the process only, not to its children. */
  signal(signal: NodeJS.Signals): void
  /** Kills the whole group, and waits until it has ended. */
  kill(): Promise<void>
}

export interface ApiMember extends Member, Addresses {}

export interface MemberOptions {
  settings?: Environment
  /** A command that runs the process, such as strace with its arguments. */
  through?: string[]
  /** The file with the command line; default that of this version. */
  program?: string
}

export interface RemoteAccess {
  url: string
  key: string
  slots?: number
}

export interface Fleet {
  storage: FleetStorage
  settings: Environment
  /** Starts a process that serves the APIs and the dashboard; with `worker`, also a worker. */
  api(options?: MemberOptions & { worker?: boolean }): Promise<ApiMember>
  worker(options?: MemberOptions): Promise<Member>
  /** Starts a worker outside of the service, which knows its address and a key only. */
  remoteWorker(service: RemoteAccess): Promise<Member>
  /** The same in Python, with the workflows of the module. */
  pythonWorker(service: RemoteAccess & { module: string }): Promise<Member>
  createAccount(): Promise<TestAccount>
  /** Calls `act` with the store, and closes the store. */
  withStore<Result>(act: (store: Store) => Promise<Result>): Promise<Result>
  /** Kills every process of the service. */
  kill(): Promise<void>
}

export interface FleetOptions {
  /** Environment of every process. */
  settings?: Environment
  /** Directory of all files; default a new one. */
  directory?: string
  /** Settings of the database server. */
  server?: Record<string, string>
}

/** Creates a fleet without processes. It is killed and removed with the test. */
export async function newFleet(
  test: Test,
  kind: FleetStore,
  { settings: changes, directory, server }: FleetOptions = {},
): Promise<Fleet> {
  const storage = await kind.prepare(test, directory, server)
  const settings = {
    ...serviceSettings({ DATA_DIR: storage.dataDirectory }),
    WORKFLOWS_DIR: workflows,
    LEASE_SECONDS: '3',
    SHUTDOWN_SECONDS: '5',
    RATE_LIMIT_PER_MINUTE: '0',
    ...storage.settings,
    ...changes,
  }
  const members: Member[] = []
  const kill = async () => void (await Promise.all(members.splice(0).map((member) => member.kill())))
  test.onTestFinished(kill)
  const untilReady = async (member: Member, isReady: () => boolean) => {
    members.push(member)
    await vi.waitUntil(() => member.hasEnded() || isReady(), waitLimits)
    if (member.hasEnded()) throw new Error(`A process ended during startup:\n${member.output()}`)
    return member
  }
  const start = (
    args: string[],
    { settings: own = {}, through = [], program = main }: MemberOptions,
    ready: string,
  ) => {
    const member = spawnMember([...through, process.execPath, program, ...args], { ...settings, ...own })
    return untilReady(member, () => member.logged(ready) > 0)
  }
  return {
    storage,
    settings,
    async api({ worker = false, ...options } = {}) {
      const roles = worker ? [] : ['--only', 'execution,browser-context,dashboard']
      const member = await start(['start', ...roles], options, worker ? 'worker ready' : 'service ready')
      const addresses = parseAddresses(member.output())
      if (!addresses) throw new Error(`The service printed no addresses:\n${member.output()}`)
      return { ...member, ...addresses }
    },
    worker: (options = {}) => start(['worker'], options, 'worker ready'),
    remoteWorker({ url, key, slots = 4 }) {
      const environment = { API_KEY: key, WORKER_SLOTS: String(slots) }
      const member = spawnMember([process.execPath, main, 'worker', '--url', url], environment)
      return untilReady(member, () => member.logged('worker ready') > 0)
    },
    pythonWorker({ url, key, slots = 4, module }) {
      const command = [
        'python3',
        '-m',
        'execution_service',
        'worker',
        '--url',
        url,
        '--capacity',
        String(slots),
        module,
      ]
      const member = spawnMember(command, { API_KEY: key, PYTHONPATH: python })
      return untilReady(member, () => member.output().includes(' executes '))
    },
    async createAccount() {
      const administration = await openAdministration(readConfig(settings))
      const account = await administration.createAccount()
      await administration.close()
      return account
    },
    async withStore(act) {
      const store = await openStore(readConfig(settings))
      return act(store).finally(() => store.close())
    },
    kill,
  }
}

function spawnMember([program = '', ...args]: string[], environment: Environment): Member {
  const child = spawn(program, args, { env: cleanEnvironment(environment), detached: true })
  const pid = child.pid as number
  const counts = new Map<string, number>()
  const output = capture(child, (line) => {
    if (!line.startsWith('{')) return
    const { msg } = JSON.parse(line) as { msg: string }
    counts.set(msg, (counts.get(msg) ?? 0) + 1)
  })
  let hasEnded = false
  const ended = waitForExit(child)
  void ended.then(() => {
    hasEnded = true
  })
  return {
    pid,
    output,
    logged: (msg) => counts.get(msg) ?? 0,
    ended,
    hasEnded: () => hasEnded,
    signal: (signal) => void child.kill(signal),
    async kill() {
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        // The group has no process left.
      }
      await ended
    },
  }
}
