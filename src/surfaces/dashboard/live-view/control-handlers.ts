/** Taking over the browser of a run, handing it back, and the input in between: sent by the script of the run's page. */
import { type Controller, type PageInput, parseInput } from '../../../domain/runs/live-control.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'

/** Inputs in one request; the page collects them while the one before is sent. */
const inputsMax = 100

/** 409 if someone else has control, or no worker is connected. */
export const takeOver: StreamHandler = async ({ account, actor, user, params }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const control = await deps.liveView.control(run.id)
  if (!control || control.by !== null) return void response.status(409).end()
  // Before the command: no user has control without an entry.
  await deps.liveViews.record('run.takenOver', account.id, actor, run)
  await deps.liveView.command(run.id, { type: 'takeOver', by: toController(user) })
  response.status(204).end()
}

export const handBack: StreamHandler = async ({ account, actor, user, params }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const control = await deps.liveView.control(run.id)
  if (control?.by?.id !== user.id) return void response.status(409).end()
  await deps.liveView.command(run.id, { type: 'handBack', by: toController(user) })
  await deps.liveViews.record('run.handedBack', account.id, actor, run)
  response.status(204).end()
}

/** The form's `inputs` is a JSON array. The worker drops input of users who do not have control. */
export const sendInput: StreamHandler = async ({ account, user, params, form }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const inputs = parseInputs(form.get('inputs') ?? '')
  if (!inputs) return void response.status(400).end()
  const control = await deps.liveView.control(run.id)
  if (control?.by?.id !== user.id) return void response.status(409).end()
  await deps.liveView.command(run.id, { type: 'input', by: toController(user), inputs })
  response.status(204).end()
}

function toController({ id, name }: Controller): Controller {
  return { id, name }
}

/** Returns `undefined` unless all of it is input. */
function parseInputs(text: string): PageInput[] | undefined {
  try {
    const values: unknown = JSON.parse(text)
    if (!Array.isArray(values) || values.length > inputsMax) return undefined
    const inputs = values.map(parseInput).filter((input) => input !== undefined)
    return inputs.length === values.length ? inputs : undefined
  } catch {
    return undefined
  }
}
