/** The actions of an attempt that no scenario names: three steps with logs and progress, and every wait of its workflow. */
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Action } from './scenarios-schema.ts'

/** @param asks whether it waits for answers, as attempts that succeed do. */
export function defaultActions({ title, waits = {} }: Workflow, asks: boolean): Action[] {
  const step = (name: string, message: string, percent: number): Action => ({
    step: { name, actions: [{ log: message }, { progress: { percent, message } }] },
  })
  return [
    step('prepare', `Preparing: ${title}`, 20),
    step('execute', `Executing: ${title}`, 70),
    ...(asks ? Object.keys(waits).map((wait) => ({ ask: wait })) : []),
    step('finish', `Finishing: ${title}`, 100),
  ]
}
