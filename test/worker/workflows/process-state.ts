/** Changes its process in one way, or returns what an earlier run has left in it. */

import { existsSync, readdirSync, writeFileSync, writeSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { Worker } from 'node:worker_threads'
import { defineWorkflow } from 'execution-service/workflow'

const secret = 'of-the-first-run'
const initial = { directory: process.cwd(), listeners: process.listenerCount('exit') }
const global = globalThis as Record<PropertyKey, unknown>
const output = global.console as Console
const symbol = Symbol.for('process-state')
const originals = { now: Date.now, info: output.info, exit: process.exit, fetch, map: Array.prototype.map }

/** Each leaves something that `observe` finds. */
const changes: Record<string, () => unknown> = {
  nothing: () => {},
  workingDirectory: () => process.chdir('/'),
  environment: () => (process.env.TOKEN = secret),
  deletedVariable: () => delete process.env.PATH,
  replacedEnvironment: () => (process.env = { ...process.env, TOKEN: secret }),
  umask: () => process.umask(0),
  global: () => (global.left = secret),
  hiddenGlobal: () => Object.defineProperty(globalThis, 'left', { value: secret, configurable: true }),
  globalSymbol: () => (global[symbol] = secret),
  replacedGlobal: () => (global.fetch = async () => secret),
  replacedGetter: () => Object.defineProperty(globalThis, 'crypto', { value: secret }),
  replacedMethod: () => (Date.now = () => 0),
  prototype: () => Object.assign(Array.prototype, { left: secret }),
  replacedPrototype: () => (Array.prototype.map = () => [secret] as never),
  console: () => (output.info = () => {}),
  consoleMember: () => Object.assign(output, { left: secret }),
  processMethod: () => (process.exit = (() => {}) as never),
  processMember: () => Object.assign(process, { left: secret }),
  stream: () => (process.stdout.write = () => true),
  listener: () => process.on('exit', () => secret),
  exitCode: () => (process.exitCode = 3),
  timer: () => setInterval(() => (global.ticks = secret), 1),
  unreferencedTimer: () => setInterval(() => (global.ticks = secret), 1).unref(),
  unreferencedServer: () => createServer().listen(0, '127.0.0.1').unref(),
  thread: () => new Worker('setInterval(() => {}, 1)', { eval: true }).unref(),
  dispatcher: async () => {
    await fetch('data:,')
    Object.assign(globalThis, { [Symbol.for('undici.globalDispatcher.1')]: { dispatch: secret } })
  },
  temporaryFile: () => writeFileSync(`${tmpdir()}/left`, secret),
}

function observe(): string[] {
  const found = {
    workingDirectory: process.cwd() !== initial.directory,
    environment: process.env.TOKEN !== undefined,
    path: process.env.PATH === undefined,
    umask: process.umask() === 0,
    global: 'left' in globalThis || symbol in globalThis || 'ticks' in globalThis,
    replaced: Date.now !== originals.now || fetch !== originals.fetch || (crypto as unknown) === secret,
    prototype: 'left' in [] || Array.prototype.map !== originals.map,
    console: output.info !== originals.info || 'left' in output,
    process: process.exit !== originals.exit || 'left' in process,
    listener: process.listenerCount('exit') !== initial.listeners,
    temporaryFile: existsSync(`${tmpdir()}/left`) || readdirSync(tmpdir()).length > 0,
  }
  return Object.entries(found).flatMap(([name, isFound]) => (isFound ? name : []))
}

export default defineWorkflow({
  id: 'process-state',
  version: '1.0.0',
  title: 'Change the process, or look at it',
  variables: {
    type: 'object',
    properties: { change: { type: 'string' }, write: { type: 'string', writeOnly: true }, throws: { type: 'boolean' } },
  },
  output: {},
  async run({ variables: { change, write, throws } }) {
    const found = observe()
    if (write !== undefined) process.stdout.write(`calling with ${write} `)
    if (write !== undefined) writeSync(2, `raw with ${write} `)
    if (change !== undefined) await changes[change]?.()
    if (throws) throw new Error('as asked')
    return { pid: process.pid, found, changes: Object.keys(changes) }
  },
})
