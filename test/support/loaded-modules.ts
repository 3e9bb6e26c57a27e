/**
 * Stands before a process by `--import`, and writes down which of OpenTelemetry's modules it loads, but for what
 * prom-client has of its interface.
 */
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const path = process.env.LOADED_MODULES

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const { parentURL = '' } = context
    const isOthers = parentURL.includes('/prom-client/') || parentURL.includes('/@opentelemetry/api/')
    if (path && !isOthers && resolved.url.includes('/@opentelemetry/'))
      appendFileSync(path, `${process.pid} ${resolved.url}\n`)
    return resolved
  },
})
