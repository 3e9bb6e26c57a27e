/** Loads the modules of WORKFLOWS_DIR. Runs only in child processes, never in the process that serves the API. */
import { readdir } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { WorkflowDefinition } from './define-workflow.ts'
import { parseWorkflow, type Workflow, WorkflowError } from './workflow.ts'

export interface LoadedWorkflow extends Workflow {
  run: WorkflowDefinition<object, object, true>['run']
}

/** Each module directly in the directory is a workflow. Shared code belongs in subdirectories. */
const modulePattern = /(?<!\.d|\.test)\.(ts|mts|js|mjs)$/

/**
 * @param directory empty when WORKFLOWS_DIR is not set.
 * @throws {WorkflowError} if a module fails to load or two workflows have the same ID.
 */
export async function loadWorkflows(directory: string): Promise<Map<string, LoadedWorkflow>> {
  if (directory === '') return new Map()
  resolveOwnPackage(directory)
  const loaded = new Map<string, LoadedWorkflow>()
  const paths = new Map<string, string>()
  for (const path of await listModules(directory)) {
    const definition = await load(path)
    const workflow = parseWorkflow(path, definition)
    const other = paths.get(workflow.id)
    if (other) throw new WorkflowError(`${other} and ${path} have the same id "${workflow.id}": rename one of them.`)
    paths.set(workflow.id, path)
    loaded.set(workflow.id, { ...workflow, run: (definition as LoadedWorkflow).run })
  }
  return loaded
}

async function listModules(directory: string): Promise<string[]> {
  try {
    const files = (await readdir(directory)).filter((file) => modulePattern.test(file))
    return files.sort().map((file) => join(directory, file))
  } catch (error) {
    throw new WorkflowError(`WORKFLOWS_DIR (${directory}) cannot be read: ${(error as Error).message}.`)
  }
}

async function load(path: string): Promise<unknown> {
  try {
    return (await import(pathToFileURL(path).href)).default
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
    throw new WorkflowError(`${path} failed to load: ${name}: ${message.split('\n')[0]}.`)
  }
}

/**
 * Lets workflows import `execution-service/workflow` from any WORKFLOWS_DIR. Inside this package Node.js resolves it
 * without a hook, which would cost 20 MB: with a hook, Node.js strips types again instead of reading its cache.
 */
function resolveOwnPackage(directory: string): void {
  const packageRoot = fileURLToPath(new URL('../../..', import.meta.url))
  if (`${directory}/`.startsWith(packageRoot)) return
  const url = new URL('./define-workflow.ts', import.meta.url).href
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'execution-service/workflow' ? { url, shortCircuit: true } : next(specifier, context),
  })
}
