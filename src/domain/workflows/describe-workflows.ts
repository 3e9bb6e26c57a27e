/** A process that loads the workflows, tells its parent what they say of themselves, and ends. */
import { loadWorkflows } from './load-workflows.ts'
import { WorkflowError } from './workflow.ts'

/** What the process tells its parent. */
export type Description = { workflows: string } | { refused: string }

async function describe(directory: string): Promise<Description> {
  try {
    return { workflows: JSON.stringify([...(await loadWorkflows(directory)).values()]) }
  } catch (error) {
    if (error instanceof WorkflowError) return { refused: error.message }
    throw error
  }
}

process.send?.(await describe(process.argv[2] ?? ''), () => process.exit())
