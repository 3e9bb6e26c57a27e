/** `mock`: runs the mock as a process, since its packages are not part of an installation. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError } from './output.ts'
import { onStopSignal } from './stop-signal.ts'

const module = fileURLToPath(new URL(`../tools/mock/main${extname(import.meta.url)}`, import.meta.url))

/** An optional peer dependency of the published package. */
const peer = '@stoplight/prism-http'

/** @throws {CommandError} when the mock's packages are not installed. */
export async function mock({ workflows, webhook }: { workflows?: string; webhook?: string }): Promise<void> {
  requirePeer()
  const parameters = [
    ...(workflows === undefined ? [] : ['--workflows', workflows]),
    ...(webhook === undefined ? [] : ['--webhook', webhook]),
  ]
  const child = spawn(process.execPath, [module, ...parameters], { stdio: 'inherit' })
  onStopSignal(async () => void child.kill('SIGTERM'))
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
}

function requirePeer(): void {
  try {
    import.meta.resolve(peer)
  } catch {
    throw new CommandError(`The mock needs ${peer}, which is not installed: run \`npm install --save-dev ${peer}\`.`)
  }
}
