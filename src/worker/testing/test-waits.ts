/** What a run under test waits for. The test answers in place of callers, and time passes without waiting. */

import type { ReachedWait } from '../../domain/queue/run-options.ts'
import { toRunError } from '../../domain/runs/reported-values.ts'
import { CalledRunFailed } from '../../domain/workflows/define-workflow.ts'
import { declaredWait, type Workflow } from '../../domain/workflows/workflow.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { toJson } from '../executors/workflow-values.ts'
import { Delayed } from './fake-clock.ts'
import type { CallFake, RunWait } from './run-workflow.ts'

export interface WaitFakes {
  workflow: Workflow
  workflows: Workflows
  /** By name: answers, or functions that return them. `undefined` for none in time. */
  answers: Readonly<Record<string, unknown>>
  /** One for all called workflows, or by their IDs. */
  calls: CallFake | Readonly<Record<string, CallFake>>
  redact<Value>(value: Value): Value
  now(): number
}

interface Kept {
  request: ReachedWait
  shown: RunWait
  reachedAt: number
  /** When it ends, as far as is known. */
  endsAt: number
  /** What the run gets then, as JSON. */
  outcome: string
  /** Whether the test has been asked. */
  isAsked: boolean
  isDelivered: boolean
}

const timedOut = '{"ok":false}'

export class TestWaits {
  readonly #fakes: WaitFakes
  readonly #kept = new Map<string, Kept>()
  readonly #usedCalls = new Set<string>()
  /** The secrets in the answers that have come. */
  readonly secrets: unknown[] = []

  constructor(fakes: WaitFakes) {
    this.#fakes = fakes
    const unknown = Object.keys(fakes.answers).find((name) => !Object.hasOwn(fakes.workflow.waits ?? {}, name))
    if (unknown !== undefined) throw new Error(`The workflow declares no wait "${unknown}", which the test answers.`)
  }

  /** In the order in which the run has reached them. */
  list(): RunWait[] {
    return [...this.#kept.values()].map(({ shown }) => shown)
  }

  get isEmpty(): boolean {
    return this.#kept.size === 0
  }

  /** Returns whether it is new, and the error if the run has reached another kind of wait by this name. */
  reach(request: ReachedWait): { isNew: boolean; error?: string } {
    const { name, kind } = request
    const before = this.#kept.get(name)
    if (before) {
      const isSame = before.request.kind === kind
      return {
        isNew: false,
        ...(!isSame && { error: `"${name}" was reached as ${before.request.kind} before, and as ${kind} now.` }),
      }
    }
    const now = this.#fakes.now()
    const endsAt = kind === 'run' ? Number.POSITIVE_INFINITY : request.deadline
    const outcome = kind === 'sleep' ? 'null' : timedOut
    const shown = this.#describe(request)
    this.#kept.set(name, { request, shown, reachedAt: now, endsAt, outcome, isAsked: false, isDelivered: false })
    return { isNew: true }
  }

  #describe(request: ReachedWait): RunWait {
    const { name, kind } = request
    const { title, shown } = kind === 'answer' ? request : { title: null, shown: null }
    const { workflowId, variables } = kind === 'run' ? request : { workflowId: null, variables: null }
    const declared = kind === 'answer' ? (declaredWait(this.#fakes.workflow, name)?.title ?? null) : null
    const seen = this.#fakes.redact({ title: title ?? declared, shown, variables })
    return { name, kind, status: 'open', seconds: 0, ...seen, workflowId, value: null }
  }

  deadlineOf(name: string): number {
    return this.#kept.get(name)?.endsAt ?? 0
  }

  /** The waits that have an answer which the run has not got. */
  answered(): string[] {
    const now = this.#fakes.now()
    const kept = [...this.#kept.values()].filter(({ isDelivered, endsAt, outcome, request }) => {
      return request.kind === 'answer' && !isDelivered && endsAt <= now && outcome !== timedOut
    })
    return kept.map(({ request }) => request.name)
  }

  /** The outcomes of waits that have ended and that the run has not got, in the order in which they have ended. */
  take(names: readonly string[]): { name: string; kind: RunWait['kind']; outcome: string }[] {
    const now = this.#fakes.now()
    const ended = names
      .flatMap((name) => this.#kept.get(name) ?? [])
      .filter(({ isDelivered, endsAt }) => !isDelivered && endsAt <= now)
      .sort((a, b) => a.endsAt - b.endsAt)
    return ended.map((kept) => {
      kept.isDelivered = true
      end(kept, kept.outcome === timedOut ? 'timedOut' : 'completed', kept.endsAt)
      return { name: kept.request.name, kind: kept.request.kind, outcome: kept.outcome }
    })
  }

  /** Asks the test for answers and outputs. Resolves with the time at which the next wait ends. */
  async nextEnd(): Promise<number> {
    const open = [...this.#kept.values()].filter(({ isDelivered }) => !isDelivered)
    for (const kept of open) if (!kept.isAsked) await this.#ask(kept)
    return Math.min(...open.map(({ endsAt }) => endsAt))
  }

  async #ask(kept: Kept): Promise<void> {
    kept.isAsked = true
    const { request, shown } = kept
    if (request.kind === 'answer') await this.#answer(kept, request.name)
    else if (request.kind === 'run') await this.#call(kept, request, shown)
  }

  async #answer(kept: Kept, name: string): Promise<void> {
    const { answers, workflow, workflows } = this.#fakes
    if (!Object.hasOwn(answers, name)) {
      throw new Error(
        `The run waits for the answer "${name}", which the test does not give: set it in the option \`answers\` of runWorkflow, to undefined if none comes in time.`,
      )
    }
    const given = answers[name]
    const { seconds, value } = toDelayed(typeof given === 'function' ? await given(kept.shown) : given)
    if (value === undefined) return
    const checked = workflows.checkAnswer(workflow.id, name, JSON.parse(toJson(value, `The answer "${name}"`)))
    if (!checked || 'errors' in checked) {
      const errors = (checked?.errors ?? []).map(({ pointer, detail }) => `${pointer} ${detail}`.trim()).join('; ')
      throw new Error(`The answer "${name}" does not match its schema: ${errors}.`)
    }
    const at = this.#fakes.now() + seconds * 1000
    // An answer that comes after the deadline is refused.
    if (at > kept.endsAt) return
    kept.endsAt = at
    kept.outcome = JSON.stringify({ ok: true, value: checked.value })
    kept.shown.value = checked.masked
    this.secrets.push(...Object.values(checked.secrets))
  }

  async #call(kept: Kept, request: Extract<ReachedWait, { kind: 'run' }>, shown: RunWait): Promise<void> {
    const { workflowId, variables } = request
    const { calls, redact } = this.#fakes
    const own = typeof calls !== 'function' && Object.hasOwn(calls, workflowId) ? calls[workflowId] : undefined
    const fake = typeof calls === 'function' ? calls : own
    if (!fake) {
      throw new Error(
        `The run calls the workflow "${workflowId}", whose output the test does not give: set it in the option \`calls\` of runWorkflow.`,
      )
    }
    this.#usedCalls.add(workflowId)
    const failed = (error: unknown) => (error instanceof CalledRunFailed ? error : asFailed(request.name, error))
    const result = await (async () => fake(variables, shown))().catch(failed)
    const { seconds, value } = toDelayed(result)
    kept.endsAt = this.#fakes.now() + seconds * 1000
    if (value instanceof CalledRunFailed) {
      const { runId, status, error } = value
      kept.outcome = JSON.stringify({ ok: false, runId, status, error })
      return
    }
    const output = toJson(value, `The output of call "${request.name}"`)
    kept.outcome = `{"ok":true,"output":${output}}`
    shown.value = redact(JSON.parse(output))
  }

  /** A workflow whose output the test gives, and that the run has not called. */
  unusedCall(): string | undefined {
    const { calls } = this.#fakes
    if (typeof calls === 'function') return undefined
    return Object.keys(calls).find((id) => !this.#usedCalls.has(id))
  }

  /** Ends what is open when the run ends. */
  cancel(): void {
    const now = this.#fakes.now()
    for (const kept of this.#kept.values()) if (kept.shown.status === 'open') end(kept, 'cancelled', now)
  }
}

function end({ shown, reachedAt }: Kept, status: RunWait['status'], at: number): void {
  shown.status = status
  shown.seconds = Math.max(0, at - reachedAt) / 1000
}

function asFailed(call: string, error: unknown): CalledRunFailed {
  return new CalledRunFailed(call, { runId: calledRunId, status: 'failed', error: toRunError(Object(error)) })
}

const calledRunId = '01900000-0000-7000-8000-000000000001'

function toDelayed(value: unknown): Delayed<unknown> {
  return value instanceof Delayed ? value : new Delayed(0, value)
}
