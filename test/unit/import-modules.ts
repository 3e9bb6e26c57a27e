/** Imports the modules that it gets as arguments, one after the other, and prints what each import has changed as JSON. */
import { EventEmitter } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import v8 from 'node:v8'

const calls: string[] = []

/** The named imports of modules that are loaded later call the new function, too. */
const setFlagsFromString = v8.setFlagsFromString
v8.setFlagsFromString = (flag) => {
  calls.push(`V8 flag ${flag}`)
  setFlagsFromString(flag)
}
syncBuiltinESMExports()

for (const stream of [process.stdout, process.stderr]) {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean
  stream.write = (...args: unknown[]) => {
    calls.push('output')
    return write(...args)
  }
}

const emitters = { process, stdout: process.stdout, stderr: process.stderr }

/** Zod, of which there may be several copies, shares these; only the MCP server loads it. */
const foreignGlobals = /^__zod_/

function state(): Record<string, unknown> {
  const listeners = Object.entries(emitters).map(([name, emitter]: [string, EventEmitter]) => [
    `listeners of ${name}`,
    emitter.eventNames().map((event) => [String(event), emitter.listenerCount(event)]),
  ])
  const handles = process.getActiveResourcesInfo().filter((name) => !settling.test(name))
  return {
    calls: [...calls],
    environment: { ...process.env },
    'exit code': process.exitCode ?? null,
    'deprecation warnings': process.noDeprecation ?? false,
    'working directory': process.cwd(),
    'default listeners': EventEmitter.defaultMaxListeners,
    globals: Object.getOwnPropertyNames(globalThis).filter((name) => !foreignGlobals.test(name)),
    prototypes: [Object, Array, Function, String, Promise, Map, Set, Date, Error, Uint8Array].map(({ prototype }) =>
      Reflect.ownKeys(prototype).map(String),
    ),
    handles: handles.sort(),
    ...Object.fromEntries(listeners),
  }
}

/** What importing itself takes. */
const settling = /^(FSReqPromise|FSReqCallback|FileHandle|CloseReq|Immediate|TTYWrap|PipeWrap)$/

const changes: Record<string, string[]> = {}
for (const module of process.argv.slice(2)) {
  const before = state()
  await import(module)
  // A timer or a handle is often made in a later turn.
  await new Promise((resolve) => setImmediate(resolve))
  const after = state()
  const changed = Object.keys(after).filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
  if (changed.length > 0)
    changes[module] = changed.map((key) => `${key}: ${JSON.stringify(before[key])} → ${JSON.stringify(after[key])}`)
}
process.send?.(changes)
