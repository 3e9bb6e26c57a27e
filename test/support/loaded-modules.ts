/** Preloaded with `--import`: records which modules of OpenTelemetry a process loads besides `@opentelemetry/api`. */
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const path = process.env.LOADED_MODULES

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    if (path && /\/@opentelemetry\/(?!api\/)/.test(resolved.url))
      appendFileSync(path, `${process.pid} ${resolved.url}\n`)
    return resolved
  },
})
