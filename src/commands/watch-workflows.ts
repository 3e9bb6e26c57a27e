/** Watches directories, and deploys saved workflows to the running service. */
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Config } from '../config/config.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { buildSnapshot } from '../domain/deployments/build-snapshot.ts'
import { builderIdentity } from '../domain/workflows/executor-identity.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'

/** Editors save in several steps, and a checkout writes many files. */
const quietMilliseconds = 50

/**
 * Watches each folder by itself: on Linux, `node --watch` and recursive watchers follow the file and not its name, and
 * miss every change after an editor has replaced the file by renaming another.
 */
export class FolderWatcher {
  readonly #changed = new Set<string>()
  readonly #roots: readonly string[]
  #watchers: FSWatcher[] = []
  #onChange = () => {}

  constructor(roots: readonly string[]) {
    this.#roots = roots
    this.#watch()
  }

  /** Reports a file as changed, by its path relative to the present directory. */
  add(file: string): void {
    this.#changed.add(file)
    this.#onChange()
  }

  /** Waits for changes, and returns the files once no more change. */
  async next(): Promise<string[]> {
    if (this.#changed.size === 0) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve
      })
    }
    for (let count = 0; count < this.#changed.size; await delay(quietMilliseconds)) count = this.#changed.size
    const files = [...this.#changed].sort()
    this.#changed.clear()
    // New folders are among them.
    this.#watch()
    return files
  }

  #watch(): void {
    const previous = this.#watchers
    this.#watchers = this.#roots.flatMap(findFolders).map((folder) => {
      const watcher = watch(folder, (_, name) => this.add(relative('', join(folder, name ?? ''))))
      // The folder was removed.
      return watcher.on('error', () => watcher.close())
    })
    for (const watcher of previous) watcher.close()
  }
}

function findFolders(root: string): string[] {
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const below = folders.filter(({ name }) => name !== 'node_modules').map(({ name }) => findFolders(join(root, name)))
  return [root, ...below.flat()]
}

/** Makes the saved workflows current while the service runs. An invalid one changes nothing. */
export async function deploySaved(config: Config, directory: string): Promise<void> {
  try {
    const snapshot = await buildSnapshot(directory, { identity: builderIdentity(config) })
    // Loaded at the first deployment: the service has started by then.
    const { openAdministration } = await import('../app.ts')
    const { deployments, close } = await openAdministration(config)
    const deploying = deployments.deploy(snapshot, { accountId: null, by: operator, directory })
    const { deployment, activated } = await deploying.finally(close)
    if (activated) say(`Deployed ${deployment.id.slice(0, 12)}: ${deployment.workflows.length} workflows.`)
  } catch (error) {
    say(`Not deployed: ${error instanceof WorkflowError ? error.message : inspect(error)}`)
  }
}

/** Deploys the directory after each change, until the process ends. */
export async function watchWorkflows(config: Config, directory: string): Promise<never> {
  const watcher = new FolderWatcher([directory])
  for (;;) {
    await watcher.next()
    await deploySaved(config, directory)
  }
}

/** Standard output is for the log. */
function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
