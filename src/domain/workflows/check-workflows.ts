/** What is checked of all workflows before they are deployed, in the process that loads them. */
import { requireFastSchemas } from './schema-speed.ts'
import type { Workflow } from './workflow.ts'
import { createExamples } from './workflow-examples.ts'
import { Workflows } from './workflows.ts'
import { requireDescribable } from './workflows-document.ts'

/** Adds their examples. @throws {WorkflowError} */
export function checkWorkflows(workflows: readonly Workflow[]): void {
  for (const workflow of workflows) requireFastSchemas(workflow)
  const compiled = new Workflows(workflows).compile()
  for (const workflow of workflows) {
    requireDescribable(workflow)
    workflow.examples = createExamples(compiled, workflow)
  }
}
