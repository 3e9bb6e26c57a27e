/** Bundles the module of a workflow as a deployment does, and loads the bundle into the process of the test. */
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundleDirectory } from '../../domain/deployments/bundle.ts'
import { DeploymentFiles } from '../../domain/deployments/deployment-files.ts'
import type { WorkflowDefinition } from '../../domain/workflows/define-workflow.ts'
import { ProcessReaper } from '../../domain/workflows/process-reaper.ts'

type Definition = WorkflowDefinition<object, object, true>

/** Definitions by path: bundling takes longer than most runs. */
const loaded = new Map<string, Promise<Definition>>()

const files = new DeploymentFiles(undefined, 'build')
/** Files stay until the end of this process: packages that the deployment carries may read theirs at any time. */
const reaper = new ProcessReaper({ graceSeconds: 0, filesPrefix: () => files.filesPrefix })

/** @throws {WorkflowError} as a deployment does. */
export function loadBundle(module: string | URL): Promise<Definition> {
  const path = String(module).startsWith('file:') ? fileURLToPath(module) : resolve(String(module))
  const definition = loaded.get(path) ?? bundleAndLoad(path)
  loaded.set(path, definition)
  return definition
}

async function bundleAndLoad(path: string): Promise<Definition> {
  await import('rolldown').catch(() => {
    throw new Error('The option `bundle` needs rolldown: install it with `npm install --save-dev rolldown`.')
  })
  const { content, modules } = await bundleDirectory(dirname(path), [path])
  const directory = await files.write('bundle', content, [dirname(path)])
  // Starts the shell that removes the files after this process.
  reaper.mark()
  const url = pathToFileURL(join(directory, modules[0]?.path ?? '')).href
  return (await import(/* @vite-ignore */ url)).default
}
