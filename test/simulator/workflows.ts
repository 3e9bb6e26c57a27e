/** Workflows for tests of the simulator. */
import { parseWorkflow, type Workflow } from '../../src/domain/workflows/workflow.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'

export function workflow(id: string, members: Record<string, unknown> = {}): Workflow {
  return parseWorkflow(`${id}.ts`, {
    ...{ id, version: '1', title: id, run: () => null },
    variables: { type: 'object' },
    output: { type: 'object' },
    ...members,
  })
}

export const order = workflow('ship-order', {
  variables: {
    type: 'object',
    additionalProperties: false,
    properties: { customer: { type: 'string' }, address: { type: 'object' }, items: { type: 'array' } },
  },
  output: {
    type: 'object',
    required: ['parcels'],
    properties: { parcels: { type: 'integer', minimum: 1 } },
  },
  retry: { maxAttempts: 3 },
  waits: {
    approval: {
      title: 'Ship it?',
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['approved', 'by'],
        properties: { approved: { type: 'boolean' }, by: { type: 'object', required: ['name'] } },
      },
    },
    weight: { schema: { type: 'integer', minimum: 1 } },
  },
})

export const page = workflow('page-title', { browser: true, timeLimitSeconds: 30, retry: { maxAttempts: 2 } })

export const workflows = new Workflows([order, page])
