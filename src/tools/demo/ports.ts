/** Chooses the ports that the demo's service listens on: those that were asked for, else the usual ones where free. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { type Config, settings } from '../../config.ts'
import { DemoFailed } from './service.ts'

const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT'] as const

export type PortName = (typeof names)[number]

export interface Ports {
  /** What to set; 0 leaves it to the service to take a free one, which nobody else can take before it. */
  numbers: Record<PortName, number>
  /** Those whose usual port is in use. */
  evaded: PortName[]
}

/** @param config its ports are used as they are when `environment` sets them, and 0 stands for any free one. */
export async function choosePorts(config: Config, environment: NodeJS.ProcessEnv): Promise<Ports> {
  const numbers = { DASHBOARD_PORT: 0, EXECUTION_PORT: 0, BROWSER_CONTEXT_PORT: 0, MANAGEMENT_PORT: 0 }
  const evaded: PortName[] = []
  // Held until all are chosen, so that no two of them are the same.
  const held: Server[] = []
  try {
    for (const name of names) {
      const wanted = config[name]
      if (wanted === 0) continue
      const server = await hold(config.HOST, wanted)
      if (server) {
        held.push(server)
        numbers[name] = wanted
        continue
      }
      if (environment[name]) {
        throw new DemoFailed(`${name} is ${wanted}, and something listens on that port already: set it to another one.`)
      }
      evaded.push(name)
    }
    return { numbers, evaded }
  } finally {
    await Promise.all(held.map((server) => once(server.close(), 'close')))
  }
}

/** What a person should know of a port that is not the usual one. */
export function noteOf(name: PortName, port: string): string {
  return `Port ${settings[name].default} is in use, so this is ${port}; ${name} chooses another.`
}

/** A server on the port, or nothing when somebody has it. */
async function hold(host: string, port: number): Promise<Server | undefined> {
  const server = createServer()
  try {
    await once(server.listen({ host, port }), 'listening')
    return server
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') return undefined
    throw new DemoFailed(
      `Nothing can listen on port ${port} of ${host} (${code}): set HOST or the port to another value.`,
    )
  }
}
