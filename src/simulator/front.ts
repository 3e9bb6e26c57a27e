/**
 * The addresses of a simulator. Worlds are threads with ports of their own, which end and start again; the front passes each
 * request on to the world of its API key, and keeps it while this world is replaced.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { settings } from '../config/config.ts'
import { credentialReader } from '../contract/credential.ts'
import { documentHashLocal, type Listener, listen } from '../contract/listener.ts'
import { Problem } from '../contract/problem.ts'
import { hostCheck } from '../surfaces/known-hosts.ts'
import type { Addresses } from '../surfaces/roles.ts'
import { sendProblem } from './control-problems.ts'
import { createPassOn } from './pass-on.ts'

/** The addresses that a world is reached at. */
export interface WorldAddresses extends Addresses {
  managementUrl: string
}
export type AddressName = keyof WorldAddresses

export interface PassedTo {
  /** Where the thread listens; waits while the world is replaced. */
  listening(): Promise<WorldAddresses>
  documentHash(name: AddressName): string | undefined
}

/** Handles a request itself, or returns the world that it is for. */
export type Route = (request: IncomingMessage, response: ServerResponse) => Promise<PassedTo | undefined>

const ports = {
  dashboardUrl: 'DASHBOARD_PORT',
  executionUrl: 'EXECUTION_PORT',
  browserContextUrl: 'BROWSER_CONTEXT_PORT',
  managementUrl: 'MANAGEMENT_PORT',
} as const

export class Front {
  readonly #settings: Readonly<Record<string, string>>
  /**
   * By the value of a Host header. Also for requests with a key, which is in the docs of the simulator: the browser of a
   * developer could bring it to pages of a website whose name resolves to this machine.
   */
  readonly #isKnownHost: (host: string | undefined) => boolean
  readonly #listeners = new Map<AddressName, Listener>()
  readonly #passing = createPassOn()
  /** Of worlds. */
  readonly #dashboards = new Map<PassedTo, Listener>()

  /** @param given the settings of the simulator. */
  constructor(given: Readonly<Record<string, string>>) {
    this.#settings = given
    const { HOST = settings.HOST.default, ALLOWED_HOSTS, ...urls } = given
    this.#isKnownHost = hostCheck({
      ...{ HOST, DASHBOARD_URL: urls.DASHBOARD_URL, EXECUTION_URL: urls.EXECUTION_URL },
      BROWSER_CONTEXT_URL: urls.BROWSER_CONTEXT_URL,
      ALLOWED_HOSTS: ALLOWED_HOSTS ? settings.ALLOWED_HOSTS.read(ALLOWED_HOSTS, 'ALLOWED_HOSTS') : undefined,
    })
  }

  /** Opens all ports, or none. @throws {ListenError} */
  async open(routes: Record<AddressName, Route>): Promise<WorldAddresses> {
    try {
      for (const name of Object.keys(ports) as AddressName[])
        this.#listeners.set(name, await this.#listen(name, routes[name], this.#settings[ports[name]] ?? '0'))
    } catch (error) {
      await this.close()
      throw error
    }
    const { EXECUTION_URL, BROWSER_CONTEXT_URL, DASHBOARD_URL } = this.#settings
    return {
      dashboardUrl: DASHBOARD_URL ?? this.#urlOf('dashboardUrl'),
      executionUrl: EXECUTION_URL ?? this.#urlOf('executionUrl'),
      browserContextUrl: BROWSER_CONTEXT_URL ?? this.#urlOf('browserContextUrl'),
      managementUrl: this.#urlOf('managementUrl'),
    }
  }

  /** Pages send no API key: each world has a dashboard at an address of its own. */
  async openDashboard(world: PassedTo): Promise<string> {
    const listener = await this.#listen('dashboardUrl', async () => world, '0')
    this.#dashboards.set(world, listener)
    return listener.url
  }

  async closeDashboard(world: PassedTo): Promise<void> {
    await this.#dashboards.get(world)?.stop(0)
    this.#dashboards.delete(world)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#listeners.values(), ...this.#dashboards.values()].map((listener) => listener.stop(0)))
    this.#passing.close()
  }

  #listen(name: AddressName, route: Route, port: string): Promise<Listener> {
    const { HOST = settings.HOST.default, MANAGEMENT_HOST = HOST } = this.#settings
    const locals: Record<string, unknown> = {}
    const serve = async (request: IncomingMessage, response: ServerResponse) => {
      try {
        if (!this.#isKnownHost(request.headers.host)) return refuseHost(response)
        const world = await route(request, response)
        if (!world) return
        const { [name]: url } = await world.listening()
        locals[documentHashLocal] = world.documentHash(name)
        this.#passing.passOn(request, response, url)
      } catch (error) {
        if (error instanceof Problem) sendProblem(response, error)
        // The simulator stops.
        else request.socket.destroy()
      }
    }
    const app = Object.assign(serve, { locals, request: IncomingMessage.prototype, response: ServerResponse.prototype })
    return listen(app, {
      host: name === 'managementUrl' ? MANAGEMENT_HOST : HOST,
      port: settings[ports[name]].read(port, ports[name]),
      name: ports[name],
    })
  }

  #urlOf(name: AddressName): string {
    return this.#listeners.get(name)?.url ?? ''
  }
}

function refuseHost(response: ServerResponse): void {
  response.writeHead(421, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' })
  response.end('This simulator is not known by the host name of this request: add it to ALLOWED_HOSTS.\n')
}

const bearer = credentialReader({ type: 'bearer' }, '')
const serviceKey = credentialReader({ type: 'header', name: 'x-service-api-key' }, '')

/** The credential in either of the headers in which the two APIs take it. */
export function readCredential(request: IncomingMessage): string | undefined {
  return bearer.read(request) ?? serviceKey.read(request)
}
