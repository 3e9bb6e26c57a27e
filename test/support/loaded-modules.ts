/**
 * Preloaded with `--import`: records which modules of OpenTelemetry a process loads besides `@opentelemetry/api`, or those
 * whose address matches RECORDED.
 */
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const path = process.env.LOADED_MODULES
const recorded = new RegExp(process.env.RECORDED ?? '/@opentelemetry/(?!api/)')

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    if (path && recorded.test(resolved.url)) appendFileSync(path, `${process.pid} ${resolved.url}\n`)
    return resolved
  },
})
