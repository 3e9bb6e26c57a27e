/** What an attempt does without a scenario: three steps with logs and progress, and every wait that its workflow declares. */
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Action } from './scenarios-schema.ts'

export function defaultActions({ title, waits = {} }: Workflow): Action[] {
  const step = (name: string, message: string, percent: number): Action => ({
    step: { name, actions: [{ log: message }, { progress: { percent, message } }] },
  })
  return [
    step('prepare', `Preparing: ${title}`, 20),
    step('execute', `Executing: ${title}`, 70),
    ...Object.keys(waits).map((wait) => ({ ask: wait })),
    step('finish', `Finishing: ${title}`, 100),
  ]
}
