/** What is checked of all workflows before they are deployed, in a process that has not loaded them. */

import { walk } from '../../openapi/document.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import { isKnownPattern } from '../../openapi/known-patterns.ts'
import { isSafePattern, patternsIn, safePatternAdvice } from '../../openapi/patterns.ts'
import { exampleOf, exampleVariables } from './example-values.ts'
import {
  type JsonSchema,
  schemaMembers,
  schemaOf,
  type Workflow,
  type WorkflowExamples,
  WorkflowSchemaError,
} from './workflow.ts'
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

// Refuses schemas whose validation can take very long. The API validates variables on the thread that serves requests.

/** @throws {WorkflowError} that names the workflow, the place in its schema, and the fix. */
export function requireFastSchemas(workflow: Workflow): void {
  for (const member of schemaMembers(workflow)) {
    const slow = findSlowKeyword(schemaOf(workflow, member))
    if (slow === undefined) continue
    const place = `at ${slow.pointer} in the ${member} schema of workflow "${workflow.id}"`
    const message = `${slow.keyword} ${place} may take very long on some input. ${slow.fix}`
    throw new WorkflowSchemaError(workflow, member, slow.pointer, message)
  }
}

interface SlowKeyword {
  pointer: string
  keyword: string
  fix: string
}

function findSlowKeyword(schema: JsonSchema): SlowKeyword | undefined {
  for (const { pattern, path } of patternsIn(schema)) {
    // An invalid one is reported when the schema is compiled.
    if (!isRegularExpression(pattern) || isSafePattern(pattern, 'u')) continue
    if (path.at(-1) === 'pattern' && isKnownPattern(pattern)) continue
    return { pointer: toPointer(path), keyword: `The pattern \`${pattern}\``, fix: safePatternAdvice }
  }
  for (const { value, path } of walk(schema)) {
    const { format } = Object(value) as JsonSchema
    // 100 kB of `http://a:a:…` take 7 s. Of 1 MB, all other formats take less than 0.2 s.
    if (format === 'url') {
      return { pointer: toPointer([...path, 'format']), keyword: 'The format `url`', fix: 'Use `uri`.' }
    }
  }
  return undefined
}

function isRegularExpression(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp
  } catch {
    return false
  }
}

// Valid examples of a workflow's variables and output, which are made once, when it is deployed.

/**
 * The schema's own examples of variables, or else one made from the schemas of its members. One of the output and each answer.
 * What is made and not valid, for example by a pattern, is left out.
 *
 * @throws {WorkflowError} if an example of the variables' schema is not valid by it: callers would copy it.
 */
function createExamples(workflows: Workflows, workflow: Workflow): WorkflowExamples {
  const { id, variables, output, waits } = workflow
  const own = Array.isArray(variables.examples) ? variables.examples : []
  const values = own.length > 0 ? own : [exampleVariables(variables)]
  const checkedVariables = values.flatMap((value, index) => {
    const checked = workflows.checkVariables(id, structuredClone(value))
    if ('masked' in checked) return [{ value, masked: checked.masked }]
    if (own.length === 0) return []
    const [{ pointer = '', detail = 'is not valid' } = {}] = checked.errors
    throw new WorkflowSchemaError(
      workflow,
      'variables',
      `/examples/${index}`,
      `The example at /examples/${index} in the variables schema of workflow "${id}" does not match it: ${`${pointer} ${detail}`.trim()}.`,
    )
  })
  const checkedOutput = workflows.checkOutput(id, exampleOf('output', output))
  const answers = Object.entries(waits ?? {}).flatMap(([name, { schema }]) => {
    const checked = workflows.checkAnswer(id, name, exampleOf(name, schema))
    return checked && 'value' in checked ? [[name, checked.value]] : []
  })
  return {
    variables: checkedVariables,
    outputs: 'masked' in checkedOutput ? [checkedOutput.masked] : [],
    ...(waits && { answers: Object.fromEntries(answers) }),
  }
}
