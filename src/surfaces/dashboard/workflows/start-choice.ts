/** The choice in the form of a run that is run again: from its first step, or from the step in which it failed. */
import { describeRefusedStart } from '../../../domain/runs/queue-problems.ts'
import type { RefusedStart } from '../../../domain/runs/reused-steps.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { Runs } from '../../../domain/runs/runs.ts'
import { attribute, type Html, html, nothing } from '../html.ts'

export interface StartChoice {
  /** The step in which the earlier run failed. */
  step: string
  /** How many steps the new run would not execute. */
  reusedSteps: number
  isChosen: boolean
  error?: string
}

/** `undefined` unless the earlier run failed in a step and kept the results of those before it. */
export async function initialStart(runs: Runs, from: Run | undefined): Promise<StartChoice | undefined> {
  const step = from?.attemptHistory?.at(-1)?.error?.step
  if (!from || step == null) return undefined
  const reusedSteps = await runs.countReusable(from, step)
  return reusedSteps === 0 ? undefined : { step, reusedSteps, isChosen: false }
}

/** A submitted step that was not offered is kept, so that it is refused instead of ignored. */
export async function readStart(runs: Runs, from: Run | undefined, form: URLSearchParams) {
  const initial = await initialStart(runs, from)
  const step = form.get('fromStep') ?? ''
  if (!from || step === '') return initial
  const reusedSteps = step === initial?.step ? initial.reusedSteps : 0
  return { step, reusedSteps, isChosen: true } satisfies StartChoice
}

export function withRefusal(start: StartChoice, refusal: RefusedStart): StartChoice {
  return { ...start, error: `This step ${describeRefusedStart(refusal)}.` }
}

export function renderStartChoice({ step, reusedSteps, isChosen, error }: StartChoice): Html {
  const earlier = reusedSteps === 1 ? 'The step' : `The ${reusedSteps} steps`
  const hint = `${earlier} before it will not be executed again, but return the results of the earlier run.`
  return html`<fieldset aria-describedby="${error ? 'fromStep-error' : 'fromStep-hint'}">
    <legend>Start</legend>
    <label><input type="radio" name="fromStep" value="" ${attribute('checked', !isChosen)} />From the first step</label>
    <label><input type="radio" name="fromStep" value="${step}" ${attribute('checked', isChosen)} /><span>From the failed step <strong>${step}</strong></span></label>
    ${reusedSteps > 0 ? html`<small id="fromStep-hint">${hint}</small>` : nothing}
    ${error ? html`<small id="fromStep-error" class="error">${error}</small>` : nothing}
  </fieldset>`
}
