/** Checks a running service: whether it is ready, whether its ports are its own, and whether workers are alive. */

import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { shellCommand } from '../../config/command-line.ts'
import type { Config } from '../../config/config.ts'
import { urlOf } from '../../contract/listener.ts'
import { listLiveWorkers } from '../../domain/queue/workers.ts'
import { type Finding, fail, notChecked, type Opened, ok, pluralize } from './finding.ts'

/** `absent`: nothing, or another program, listens on the management port. `hanging`: it does not reply. */
export type ServiceState = 'absent' | 'alive' | 'hanging'

type Address = Pick<Config, 'HOST' | 'MANAGEMENT_PORT'> & { MANAGEMENT_HOST?: string | undefined }

export async function findService(address: Address, millisecondsMax?: number): Promise<ServiceState> {
  const { HOST, MANAGEMENT_HOST = HOST, MANAGEMENT_PORT } = address
  if (MANAGEMENT_PORT === 0) return 'absent'
  const response = await get(urlOf(MANAGEMENT_HOST, MANAGEMENT_PORT), '/livez', millisecondsMax)
  if (response === 'unreachable') return 'absent'
  if (response === 'timeout') return 'hanging'
  return response.text === 'alive\n' ? 'alive' : 'absent'
}

export async function checkService(address: Address, state: ServiceState): Promise<Finding> {
  const { HOST, MANAGEMENT_HOST = HOST, MANAGEMENT_PORT } = address
  if (MANAGEMENT_PORT === 0) return ok('unknown, because MANAGEMENT_PORT is 0')
  const url = urlOf(MANAGEMENT_HOST, MANAGEMENT_PORT)
  if (state === 'absent') return ok(`not running, or not at ${url} (MANAGEMENT_PORT)`)
  const response = state === 'hanging' ? 'timeout' : await get(url, '/readyz')
  if (typeof response === 'string') {
    return fail(`${url} accepts connections but does not reply`, 'Kill the service with SIGKILL and start it again.')
  }
  if (response.status === 200) return ok(`running and ready (${url}/readyz)`)
  return fail(
    `running but not ready (${url}/readyz returns ${response.status})`,
    'See its log: it is stopping, or cannot read its store.',
  )
}

const responseMillisecondsMax = 5000

async function get(url: string, path: string, millisecondsMax = responseMillisecondsMax) {
  try {
    const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(millisecondsMax), redirect: 'manual' })
    return { status: response.status, text: await response.text() }
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError'
    return isTimeout ? ('timeout' as const) : ('unreachable' as const)
  }
}

export type PortName = 'DASHBOARD_PORT' | 'EXECUTION_PORT' | 'BROWSER_CONTEXT_PORT' | 'MANAGEMENT_PORT'

/** @param state used where the owner of a port cannot be found. */
export async function checkPort(config: Config, name: PortName, state: ServiceState): Promise<Finding> {
  const { DATABASE_URL, [name]: port } = config
  const hostName = name === 'MANAGEMENT_PORT' && config.MANAGEMENT_HOST ? 'MANAGEMENT_HOST' : 'HOST'
  const host = config[hostName] ?? ''
  if (port === 0) return ok('any free port')
  const code = await tryListen(host, port)
  if (!code) return ok(`${host}:${port} is free`)
  const another = `Set ${name} to another port`
  if (code === 'EACCES') return fail(`this user may not listen on ${host}:${port}`, `${another}, 1024 or higher.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return fail(`${host} is not an address of this machine`, `Set ${hostName} to one, such as 127.0.0.1 or 0.0.0.0.`)
  }
  if (code !== 'EADDRINUSE') return fail(`${host}:${port} cannot be used (${code})`, `${another}.`)
  const owner = await findPortOwner(port)
  if (!owner && state === 'alive') return ok(`${host}:${port} is in use, probably by the running service`)
  const isService = owner && (await (DATABASE_URL ? ownsManagementPort(owner, config) : hasOpenStore(owner, config)))
  if (isService) return ok(`${host}:${port} is in use by the running service`)
  const program = owner ? `${owner.name}, process ${owner.pid}` : 'of another user'
  return fail(
    `${host}:${port} is in use by another program (${program})`,
    `Stop that program, or set ${name} to another port.`,
  )
}

async function hasOpenStore({ files }: PortOwner, { DATA_DIR }: Config): Promise<boolean> {
  const store = await realpath(join(DATA_DIR, 'service.db')).catch(() => undefined)
  return store !== undefined && files.has(store)
}

/** With a database, no open file identifies the service, but it also owns the management port. */
async function ownsManagementPort({ pid }: PortOwner, config: Config): Promise<boolean> {
  return (await findPortOwner(config.MANAGEMENT_PORT))?.pid === pid && (await findService(config)) === 'alive'
}

/** Listens for a moment; returns the error's code if that fails. */
function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

interface PortOwner {
  pid: number
  /** As `ps` shows it. */
  name: string
  /** Paths of its open files. */
  files: ReadonlySet<string>
}

/** The state of a listening socket, in proc(5). */
const tcpListen = '0A'

/** Linux only; other users' processes are visible to root only. */
async function findPortOwner(port: number): Promise<PortOwner | undefined> {
  const sockets = (await findListeningInodes(port)).map((inode) => `socket:[${inode}]`)
  if (sockets.length === 0) return undefined
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number)
  for (const pid of pids) {
    const files = await readOpenFiles(pid)
    if (!sockets.some((socket) => files.has(socket))) continue
    // Without arguments, which may be secret.
    return { pid, name: (await readProc(`${pid}/comm`)).trim() || 'a program', files }
  }
  return undefined
}

async function findListeningInodes(port: number): Promise<string[]> {
  const hexadecimal = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(['net/tcp', 'net/tcp6'].map(readProc))
  return tables
    .flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)))
    .filter(([, local = '', , state]) => local.endsWith(`:${hexadecimal}`) && state === tcpListen)
    .map((columns) => columns[9] ?? '')
}

async function readOpenFiles(pid: number): Promise<ReadonlySet<string>> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
  const paths = descriptors.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => ''))
  return new Set(await Promise.all(paths))
}

function readProc(path: string): Promise<string> {
  return readFile(`/proc/${path}`, 'utf8').catch(() => '')
}

export async function checkWorkers(opened: Opened, state: ServiceState, now: number): Promise<Finding> {
  if ('error' in opened) return notChecked('the store cannot be opened', 'the store')
  const alive = opened.inspection ? await listLiveWorkers(opened.inspection.store.read, now) : []
  if (alive.length === 0 && state === 'absent') return ok('none, and the service is not running')
  if (alive.length === 0) {
    return fail(
      'no worker is alive: runs stay queued',
      `See the service's log for why its worker does not start, or start one with \`${shellCommand('worker')}\`.`,
    )
  }
  const slots = alive.reduce((sum, each) => sum + each.slots, 0)
  const hosts = [...new Set(alive.map(({ host }) => host))].join(', ')
  return ok(`${pluralize(alive.length, 'worker')} on ${hosts}, with ${pluralize(slots, 'slot')}`)
}
