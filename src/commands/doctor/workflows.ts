/** Whether the workflows load, as a start of the service loads them. */

import { describeWorkflows } from '../../domain/workflows/describe-workflows.ts'
import { type Workflow, WorkflowError } from '../../domain/workflows/workflow.ts'
import { Workflows } from '../../domain/workflows/workflows.ts'
import { type Finding, fail, ok, pluralize, reasonOf, warn } from './finding.ts'

/** What loading the workflows came to. */
export type Loaded = { workflows: Workflow[] } | { refused: string }

export async function loadWorkflows(directory: string): Promise<Loaded> {
  try {
    return { workflows: new Workflows(await describeWorkflows(directory)).list() }
  } catch (error) {
    if (error instanceof WorkflowError) return { refused: reasonOf(error) }
    throw error
  }
}

export function checkWorkflows(loaded: Loaded, directory: string): Finding {
  if ('refused' in loaded) {
    return fail(loaded.refused, 'Mend that, or set WORKFLOWS_DIR to another directory: the service does not start so.')
  }
  const count = loaded.workflows.length
  if (count === 0) {
    return warn(`there is none in ${directory}`, 'Set WORKFLOWS_DIR to the directory of your workflows.')
  }
  const browsers = browserUsers(loaded)
  const use =
    browsers === 0
      ? 'none of which uses a browser'
      : `${browsers} of which ${browsers === 1 ? 'uses' : 'use'} a browser`
  return ok(`${pluralize(count, 'workflow')} in ${directory}, ${use}`)
}

/** How many workflows use a browser. */
export function browserUsers(loaded: Loaded): number {
  return 'workflows' in loaded ? loaded.workflows.filter(({ usesBrowser }) => usesBrowser).length : 0
}
