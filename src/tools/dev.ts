/**
 * `npm run dev`: runs the service, deploys workflows when one is saved, and restarts the service when code, a document or
 * a guide is saved. Updates generated/ when a document is saved.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { exitOnError } from '../commands/output.ts'
import { onStopSignal } from '../commands/stop-signal.ts'
import { type Config, readConfig } from '../config/config.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { buildSnapshot } from '../domain/deployments/build-snapshot.ts'
import { builderIdentity } from '../domain/workflows/executor-identity.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import { DocumentError } from './generate/bundle.ts'
import { generate } from './generate/generate.ts'

/** Editors save in several steps, and a checkout writes many files. */
const settleMilliseconds = 50
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

const changed = new Set<string>()
let watchers: FSWatcher[] = []
let onChange = () => {}

/**
 * Watches each folder on its own: on Linux, `node --watch` and recursive watchers follow the file and not its name, and
 * miss every change after an editor has replaced the file by renaming another.
 */
function watchFolders(roots: readonly string[]): void {
  const previous = watchers
  watchers = roots.flatMap(findFolders).map((folder) => {
    const watcher = watch(folder, (_, name) => {
      changed.add(relative('', join(folder, name ?? '')))
      onChange()
    })
    // The folder was removed.
    return watcher.on('error', () => watcher.close())
  })
  for (const watcher of previous) watcher.close()
}

function findFolders(root: string): string[] {
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const below = folders.filter(({ name }) => name !== 'node_modules').map(({ name }) => findFolders(join(root, name)))
  return [root, ...below.flat()]
}

async function takeChanges(): Promise<string[]> {
  if (changed.size === 0) {
    await new Promise<void>((resolve) => {
      onChange = resolve
    })
  }
  for (let count = 0; count < changed.size; await delay(settleMilliseconds)) count = changed.size
  const files = [...changed].sort()
  changed.clear()
  return files
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

/** Makes the saved workflows current while the service runs. An invalid one changes nothing. */
async function deploy(config: Config, directory: string): Promise<void> {
  try {
    const snapshot = await buildSnapshot(directory, { identity: builderIdentity(config) })
    // Loaded at the first deployment: the service has started by then.
    const { openAdministration } = await import('../app.ts')
    const { deployments, close } = await openAdministration(config)
    const deploying = deployments.deploy(snapshot, { accountId: null, by: operator, directory })
    const { deployment, activated } = await deploying.finally(close)
    if (activated) say(`Deployed ${deployment.id.slice(0, 12)}: ${deployment.workflows.length} workflows.`)
  } catch (error) {
    say(`Not deployed: ${error instanceof WorkflowError ? error.message : (error as Error).stack}`)
  }
}

async function dev(): Promise<void> {
  const config = readConfig(process.env)
  const { WORKFLOWS_DIR } = config
  const isWorkflow = (file: string) =>
    WORKFLOWS_DIR !== undefined && `${resolve(file)}${sep}`.startsWith(WORKFLOWS_DIR + sep)
  const roots = ['src', 'openapi', 'docs/guides', 'docs/samples', ...(WORKFLOWS_DIR ? [WORKFLOWS_DIR] : [])]
  watchFolders(roots)
  onStopSignal(stopService)
  startService()
  if (await updateGenerated()) changed.add('generated/')
  for (;;) {
    const files = await takeChanges()
    watchFolders(roots)
    // A service that has exited starts again, which deploys.
    if (WORKFLOWS_DIR !== undefined && service && files.every(isWorkflow)) {
      await deploy(config, WORKFLOWS_DIR)
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
