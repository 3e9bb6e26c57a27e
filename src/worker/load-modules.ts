/** Loads the workflows of a deployment, in an executor. Each module by itself: one that throws fails only its own runs. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { WorkflowDefinition } from '../domain/workflows/define-workflow.ts'

type Run = WorkflowDefinition<object, object, true>['run']

/** The function of a workflow, or what its module threw. */
export type LoadedModule = { run: Run } | { error: unknown }

/** @param modules paths in the directory, by workflow. */
export async function loadModules(
  directory: string,
  modules: Record<string, string>,
): Promise<Map<string, LoadedModule>> {
  const loaded = new Map<string, LoadedModule>()
  for (const [workflowId, path] of Object.entries(modules)) loaded.set(workflowId, await load(join(directory, path)))
  return loaded
}

async function load(path: string): Promise<LoadedModule> {
  try {
    const definition = (await import(pathToFileURL(path).href)).default
    // Deployment has checked this. A module may export something else on another machine.
    if (typeof definition?.run !== 'function')
      throw new TypeError('The default export of its module has no function run.')
    return { run: (context) => definition.run(context) }
  } catch (error) {
    return { error }
  }
}
