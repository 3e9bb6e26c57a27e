/** Runs `prism mock` on both documents, without the stages of the service in front: `npm run mock -- --bare`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { DocumentName } from '../../openapi/document.ts'

export const prismCommand = fileURLToPath(new URL('../../../node_modules/.bin/prism', import.meta.url))

export interface BarePrism {
  url: string
  stop(): Promise<void>
}

/** @param port 0 for any free port. */
export async function startBarePrism(name: DocumentName, host: string, port: string): Promise<BarePrism> {
  const args = ['mock', `generated/${name}/document.json`, '--host', host, '--port', port]
  const child = spawn(process.execPath, [prismCommand, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill()
    await once(child, 'exit')
  }
  return { url: await waitForAddress(child), stop }
}

/** @throws {Error} with the output of Prism if it exits before it listens. */
export function waitForAddress(child: ChildProcess): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`Prism did not start:\n${output}`)))
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000)
      const [, url] = /Prism is listening on (\S+)/.exec(output) ?? []
      if (url) resolve(url)
    })
  })
}
