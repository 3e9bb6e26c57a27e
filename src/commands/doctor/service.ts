/** The service itself, if it runs: whether it is ready, whether its ports are its own, and whether any worker lives. */
import { realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { findLiveWorkers } from '../../app.ts'
import type { Config } from '../../config.ts'
import { urlOf } from '../../contract/listener.ts'
import { type Finding, fail, ok, pluralize, unchecked } from './finding.ts'
import { type PortOwner, portOwner } from './port-owner.ts'
import type { Read } from './store.ts'

/** How the management address answers: `absent` when nobody listens or it is another program, `silent` when it hangs. */
export type Running = 'absent' | 'alive' | 'silent'

type Address = Pick<Config, 'HOST' | 'MANAGEMENT_PORT'>

export async function runningService({ HOST, MANAGEMENT_PORT }: Address, millisecondsMax?: number): Promise<Running> {
  if (MANAGEMENT_PORT === 0) return 'absent'
  const answer = await ask(urlOf(HOST, MANAGEMENT_PORT), '/livez', millisecondsMax)
  if (answer === undefined || answer === 'silent') return answer ?? 'absent'
  return answer.text === 'alive\n' ? 'alive' : 'absent'
}

export async function checkService({ HOST, MANAGEMENT_PORT }: Address, running: Running): Promise<Finding> {
  if (MANAGEMENT_PORT === 0) return ok('MANAGEMENT_PORT is 0, so that it cannot be asked')
  const url = urlOf(HOST, MANAGEMENT_PORT)
  if (running === 'absent') return ok(`it does not run, or not at ${url}, which MANAGEMENT_PORT says`)
  const answer = running === 'silent' ? running : await ask(url, '/readyz')
  if (answer === undefined || answer === 'silent') {
    return fail(
      `${url} takes connections, and does not answer`,
      'Stop the service, by SIGKILL if need be, and start it.',
    )
  }
  if (answer.status === 200) return ok(`it runs, and is ready (${url}/readyz)`)
  return fail(
    `it runs, and is not ready (${url}/readyz answers ${answer.status})`,
    'Look into its log: it is stopping, or cannot read its store.',
  )
}

const answerMillisecondsMax = 5000

async function ask(url: string, path: string, millisecondsMax = answerMillisecondsMax) {
  try {
    const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(millisecondsMax), redirect: 'manual' })
    return { status: response.status, text: await response.text() }
  } catch (error) {
    return error instanceof DOMException && error.name === 'TimeoutError' ? ('silent' as const) : undefined
  }
}

export type PortName = 'DASHBOARD_PORT' | 'EXECUTION_PORT' | 'BROWSER_CONTEXT_PORT' | 'MANAGEMENT_PORT'

/** @param running whether the service's management address answers, for where Linux does not tell whose a port is. */
export async function checkPort(config: Config, name: PortName, running: Running): Promise<Finding> {
  const { HOST, DATABASE_URL, [name]: port } = config
  if (port === 0) return ok('any that is free')
  const refused = await bind(HOST, port)
  if (!refused) return ok(`${HOST}:${port} is free`)
  const otherwise = `Set ${name} to another port`
  if (refused === 'EACCES') return fail(`${HOST}:${port} may not be used by this user`, `${otherwise}, from 1024 on.`)
  if (refused === 'EADDRNOTAVAIL' || refused === 'ENOTFOUND') {
    return fail(`${HOST} is not an address of this machine`, 'Set HOST to one, such as 127.0.0.1 or 0.0.0.0.')
  }
  if (refused !== 'EADDRINUSE') return fail(`${HOST}:${port} cannot be used (${refused})`, `${otherwise}.`)
  const owner = await portOwner(port)
  if (!owner && running === 'alive') return ok(`${HOST}:${port} is used, as it seems by the service, which runs`)
  const isOurs = owner && (await (DATABASE_URL ? alsoManages(owner, config) : hasStore(owner, config)))
  if (isOurs) return ok(`${HOST}:${port} is used by the service, which runs`)
  const by = owner ? `${owner.name}, process ${owner.pid}` : 'a program of another user'
  return fail(
    `${HOST}:${port} is in use by another program (${by})`,
    `Stop that program, or set ${name} to another port.`,
  )
}

async function hasStore({ files }: PortOwner, { DATA_DIR }: Config): Promise<boolean> {
  const store = await realpath(join(DATA_DIR, 'service.db')).catch(() => undefined)
  return store !== undefined && files.has(store)
}

/** A process on a database has no file that tells what it is, but a management address beside its other ports. */
async function alsoManages({ pid }: PortOwner, config: Config): Promise<boolean> {
  return (await portOwner(config.MANAGEMENT_PORT))?.pid === pid && (await runningService(config)) === 'alive'
}

/** Listens for a moment; returns the code of the error when that is refused. */
function bind(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

export async function checkWorkers(read: Read, running: Running, now: number): Promise<Finding> {
  if ('refused' in read) return unchecked('the store does not open', 'the store')
  const store = read.inspection?.store
  const alive = store ? await findLiveWorkers(store, now) : []
  if (alive.length === 0 && running === 'absent') return ok('none, and the service does not run')
  if (alive.length === 0) {
    return fail(
      'none is alive: runs stay queued',
      "Look into the service's log for why its worker does not start, or start one by `npm run worker`.",
    )
  }
  const slots = alive.reduce((sum, each) => sum + each.slots, 0)
  const hosts = [...new Set(alive.map(({ host }) => host))].join(', ')
  return ok(`${pluralize(alive.length, 'worker')} on ${hosts}, with ${pluralize(slots, 'slot')}`)
}
