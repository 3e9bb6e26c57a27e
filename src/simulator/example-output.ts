/** Outputs that fit the schema of their workflow. */
import { exampleOf } from '../domain/workflows/example-values.ts'
import { type Workflow, WorkflowError } from '../domain/workflows/workflow.ts'
import { Workflows } from '../domain/workflows/workflows.ts'

/** The schema's first example that is valid, or else a value made from the schema; `undefined` if none is valid. */
export function makeOutput(workflow: Workflow): unknown {
  const { output: schema, examples } = workflow
  const deployed = examples?.outputs ?? []
  const own = Array.isArray(schema.examples) ? schema.examples : []
  const workflows = new Workflows([workflow])
  const isValid = (value: unknown) => 'masked' in workflows.checkOutput(workflow.id, structuredClone(value))
  try {
    return [...own, ...deployed, exampleOf('output', schema)].find(isValid)
  } catch (error) {
    // The schema refers to one of another workflow. The deployment has checked the example.
    if (error instanceof WorkflowError) return deployed[0]
    throw error
  }
}
