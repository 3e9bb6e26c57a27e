/** `mock`: runs the mock as a process, since its packages are not part of an installation. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError } from './output.ts'
import type { SimulateOptions } from './simulate.ts'
import { onStopSignal } from './stop-signal.ts'

const module = fileURLToPath(new URL(`../tools/mock/main${extname(import.meta.url)}`, import.meta.url))

/** An optional peer dependency of the published package. */
const peer = '@stoplight/prism-http'

interface MockOptions extends SimulateOptions {
  simulate?: boolean
}

/** @throws {CommandError} when the mock's packages are not installed, or options do not belong together. */
export async function mock({ simulate: isSimulated = false, ...options }: MockOptions): Promise<void> {
  const { workflows, ...ofSimulator } = options
  if (isSimulated) return simulateInstead(options)
  const [useless] = Object.keys(ofSimulator)
  if (useless) throw new CommandError(`--${useless} needs --simulate.`)
  requirePeer()
  const parameters = workflows === undefined ? [] : ['--workflows', workflows]
  const child = spawn(process.execPath, [module, ...parameters], { stdio: 'inherit' })
  onStopSignal(async () => void child.kill('SIGTERM'))
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
}

/** Needs none of the mock's packages. */
export async function simulateInstead(options: SimulateOptions): Promise<void> {
  const { simulate } = await import('./simulate.ts')
  await simulate(options)
}

function requirePeer(): void {
  try {
    import.meta.resolve(peer)
  } catch {
    throw new CommandError(`The mock needs ${peer}, which is not installed: run \`npm install --save-dev ${peer}\`.`)
  }
}
