/** Valid examples of a workflow's variables and output, which are made once, when it is deployed. */
import { exampleOutput, exampleVariables } from './example-values.ts'
import { type Workflow, WorkflowError, type WorkflowExamples } from './workflow.ts'
import type { Workflows } from './workflows.ts'

/**
 * The schema's own examples of variables, or else one made from the schemas of its members, and the same for the output.
 * What is made and not valid, for example by a pattern, is left out.
 *
 * @throws {WorkflowError} if an example of the variables' schema is not valid by it: callers would copy it.
 */
export function createExamples(workflows: Workflows, { id, variables, output }: Workflow): WorkflowExamples {
  const own = Array.isArray(variables.examples) ? variables.examples : []
  const values = own.length > 0 ? own : [exampleVariables(variables)]
  const checkedVariables = values.flatMap((value, index) => {
    const checked = workflows.checkVariables(id, structuredClone(value))
    if ('masked' in checked) return [{ value, masked: checked.masked }]
    if (own.length === 0) return []
    const [{ pointer = '', detail = 'is not valid' } = {}] = checked.errors
    throw new WorkflowError(
      `The example at /examples/${index} in the variables schema of workflow "${id}" does not match it: ${`${pointer} ${detail}`.trim()}.`,
    )
  })
  const checkedOutput = workflows.checkOutput(id, exampleOutput(output))
  return { variables: checkedVariables, outputs: 'masked' in checkedOutput ? [checkedOutput.masked] : [] }
}
