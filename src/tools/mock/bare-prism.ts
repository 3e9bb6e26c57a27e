/** Runs the `prism` command, without the stages of the service in front. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { DocumentName } from '../../openapi/document.ts'

const prismCommand = fileURLToPath(new URL('../../../node_modules/.bin/prism', import.meta.url))

/** Starts `prism mock` or `prism proxy` with the Node version of this process, which Prism requires. */
export function spawnPrism(
  command: 'mock' | 'proxy',
  name: DocumentName,
  args: string[],
  stdio: StdioOptions,
): ChildProcess {
  // Prism does not handle rejections, and would exit at the first malformed request.
  const nodeArgs = ['--unhandled-rejections=none', prismCommand]
  return spawn(process.execPath, [...nodeArgs, command, `generated/${name}/document.json`, ...args], { stdio })
}

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}
