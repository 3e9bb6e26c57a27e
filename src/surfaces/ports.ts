/** The ports of a process, and where everyone else finds what it and others serve. */
import type { Express } from 'express'
import type { Config } from '../config.ts'
import { type Listener, listen, urlOf } from '../contract/listener.ts'
import { type Surface, surfaces } from './roles.ts'

/** Where the readers of pages and docs reach each surface, in whichever process it is served. */
export interface Addresses {
  dashboardUrl: string
  executionUrl: string
  browserContextUrl: string
}

export type SurfaceApps = ReadonlyMap<Surface, Express>

/** Opens all ports, or none of them. */
export async function listenOnAll(config: Config, apps: SurfaceApps, management: Express) {
  const opened = new Map<Surface, Listener>()
  const at = (name: PortSetting) => ({ host: config.HOST, port: config[name], name })
  try {
    for (const [name, app] of apps) opened.set(name, await listen(app, at(surfaces[name].port)))
    return { surfaces: opened, management: await listen(management, at('MANAGEMENT_PORT')) }
  } catch (error) {
    await Promise.all([...opened.values()].map((listener) => listener.stop(0)))
    throw error
  }
}

type PortSetting = (typeof surfaces)[Surface]['port'] | 'MANAGEMENT_PORT'

/** What another process serves is at its public address or, for all that is known here, at its port on this host. */
export function addressesOf(config: Config, listeners: ReadonlyMap<Surface, Listener>): Addresses {
  const of = (name: Surface) => {
    const { url, port } = surfaces[name]
    return config[url] ?? listeners.get(name)?.url ?? urlOf(config.HOST, config[port])
  }
  return { dashboardUrl: of('dashboard'), executionUrl: of('execution'), browserContextUrl: of('browser-context') }
}
