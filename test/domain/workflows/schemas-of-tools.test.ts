/** Schemas of every type that libraries have, as they wrote them: each is accepted, or refused with its place and what to write instead. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { checkWorkflows } from '../../../src/domain/workflows/check-workflows.ts'
import { parseWorkflow, WorkflowSchemaError } from '../../../src/domain/workflows/workflow.ts'

interface Recorded {
  library: string
  type: string
  /** JSON Pointer to what is refused. */
  refused?: string
  schema: { value: unknown; $defs?: object; definitions?: object }
}

const file = new URL('./schemas-of-tools.jsonl', import.meta.url)
const recorded: Recorded[] = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))

function workflow({ value, ...definitions }: Recorded['schema']) {
  const variables = { type: 'object', properties: { value }, ...definitions }
  return parseWorkflow('w.ts', { id: 'w', version: '1.0.0', title: 'W', variables, output: {}, run: () => null })
}

/** Why a schema is refused. */
function refusalOf(schema: Recorded['schema']): WorkflowSchemaError | undefined {
  try {
    checkWorkflows([workflow(schema)])
    return undefined
  } catch (error) {
    if (error instanceof WorkflowSchemaError) return error
    throw error
  }
}

test.each([...new Set(recorded.map(({ library }) => library))])('the types of %s', (library) => {
  for (const { type, refused, schema } of recorded.filter((each) => each.library === library)) {
    const refusal = refusalOf(schema)
    expect(refusal?.place, type).toBe(refused && `/variables${refused}`)
    if (refusal) expect(refusal.message, type).toMatch(/workflow "w" .*: \/\S+ .*(Write|Use) /)
  }
})

test('annotations of tools and extensions are accepted, and typing errors are not', () => {
  const annotations = { example: 'a', 'x-form': 'wide', externalDocs: {}, $comment: 'c' }
  expect(refusalOf({ value: { type: 'string', ...annotations } })).toBeUndefined()
  expect(refusalOf({ value: { type: 'string', minLenght: 1 } })?.message).toBe(
    'The variables schema of workflow "w" is invalid: /properties/value/minLenght is an unknown keyword. Names of extensions begin with `x-`.',
  )
})
