/**
 * `npm run dev`: runs the service, deploys workflows when one is saved, and restarts the service when code, a document or
 * a guide is saved. Updates generated/ when a document is saved.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { resolve, sep } from 'node:path'
import { exitOnError } from '../commands/output.ts'
import { onStopSignal } from '../commands/stop-signal.ts'
import { deploySaved, FolderWatcher } from '../commands/watch-workflows.ts'
import { readConfig } from '../config/config.ts'
import { DocumentError } from './generate/bundle.ts'
import { generate } from './generate/generate.ts'

/** A service that is blocked, for example by an endless loop, is killed after this time. */
const stopMillisecondsMax = 5000

let service: ChildProcess | undefined

function startService(): void {
  const child = fork('src/main.ts', ['start', '--allow-breaking'], {
    env: { SHUTDOWN_SECONDS: '1', ...process.env },
    execArgv: [],
  })
  service = child
  child.once('exit', (code, signal) => {
    if (service !== child) return
    service = undefined
    say(`The service exited (${signal ?? `exit code ${code}`}). It starts again when you save a file.`)
  })
}

async function stopService(): Promise<void> {
  const child = service
  service = undefined
  if (!child) return
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMillisecondsMax)
  child.kill('SIGTERM')
  await once(child, 'exit')
  clearTimeout(timer)
}

/** Returns the number of files written; `undefined` when a document is invalid. */
async function updateGenerated(): Promise<number | undefined> {
  try {
    return (await generate()).length
  } catch (error) {
    say(`Not restarted: ${error instanceof DocumentError ? error.message : (error as Error).stack}`)
    return undefined
  }
}

async function dev(): Promise<void> {
  const config = readConfig(process.env)
  const { WORKFLOWS_DIR } = config
  const isWorkflow = (file: string) =>
    WORKFLOWS_DIR !== undefined && `${resolve(file)}${sep}`.startsWith(WORKFLOWS_DIR + sep)
  const roots = ['src', 'openapi', 'docs/guides', 'docs/samples', ...(WORKFLOWS_DIR ? [WORKFLOWS_DIR] : [])]
  const watcher = new FolderWatcher(roots)
  onStopSignal(stopService)
  startService()
  if (await updateGenerated()) watcher.add('generated/')
  for (;;) {
    const files = await watcher.next()
    // A service that has exited starts again, which deploys.
    if (WORKFLOWS_DIR !== undefined && service && files.every(isWorkflow)) {
      await deploySaved(config, WORKFLOWS_DIR)
      continue
    }
    if (files.some((file) => file.startsWith('openapi/')) && (await updateGenerated()) === undefined) continue
    say(`Restarting: ${files.slice(0, 3).join(', ')}${files.length > 3 ? ` and ${files.length - 3} more` : ''}`)
    await stopService()
    startService()
  }
}

/** Standard output is for the log. */
function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

await exitOnError(dev)
