/** Executes a workflow's `run` function and describes how it ended, in executors and in tests of workflows. */
import { NonRetryableError } from '../../domain/workflows/define-workflow.ts'
import type { AttemptMessage } from './messages.ts'
import type { RunningAttempt } from './run-context.ts'
import { describeError, formatSafely, toJson, toText } from './workflow-values.ts'

type Ended = Extract<AttemptMessage, { type: 'returned' | 'threw' | 'signedOut' }>

/**
 * @param run calls the workflow's function with the context of `running`.
 * @param checkReusable executes callbacks that the run left behind; returns whether the process has none left.
 * @param root the directory of workflows, to which the paths in stacks are relative.
 */
export async function executeWorkflow(
  running: RunningAttempt,
  run: () => Promise<unknown>,
  checkReusable: () => Promise<boolean>,
  root: string,
): Promise<Ended> {
  try {
    const { session } = running
    const execute = session ? session.execute(run) : run()
    const output = toOutput(await execute.finally(() => running.stopWaiting()))
    const state = await running.browser?.end(true)
    return { type: 'returned', output, reusable: await checkReusable(), state }
  } catch (error) {
    if (running.session?.isSuspendedBy(error)) {
      const { message, stack } = describeError(error, root)
      // A browser without a session is no evidence of a failure.
      await running.browser?.end(true)
      return { type: 'signedOut', message, stack, step: running.failedStep(error), reusable: await checkReusable() }
    }
    const state = await running.browser?.end(false)
    const described = describeError(error, root)
    const ended = running.browser?.crashed ? browserEnded(described.message) : undefined
    return { type: 'threw', reason: reasonOf(error), ...described, ...ended, step: running.failedStep(error), state }
  }
}

function reasonOf(error: unknown): Extract<Ended, { type: 'threw' }>['reason'] {
  if (error instanceof OutputInvalid) return 'outputInvalid'
  return error instanceof NonRetryableError ? 'nonRetryable' : 'workflowFailed'
}

class OutputInvalid extends Error {
  override name = 'OutputInvalid'
}

function toOutput(value: unknown): string {
  try {
    return toJson(value, 'The output')
  } catch (error) {
    throw new OutputInvalid((error as Error).message)
  }
}

/** Playwright's own error then depends on the call in progress and may name calls that the workflow did not make. */
function browserEnded(message: string) {
  return { name: 'BrowserEnded', message: `The browser ended while the run used it: ${message}` }
}

const consoleLevels = { log: 'info', info: 'info', debug: 'info', warn: 'warn', error: 'error', trace: 'info' } as const

/**
 * Sends console output to `write`, which returns false for output that is not a run's: it is then printed.
 *
 * @returns a function that restores the console.
 */
export function captureConsole(
  write: (level: 'info' | 'warn' | 'error', toMessage: () => string) => boolean,
): () => void {
  const originals = { ...console }
  for (const [method, level] of Object.entries(consoleLevels)) {
    const original = originals[method as keyof typeof consoleLevels]
    const capture = (...values: unknown[]) => {
      if (!write(level, () => toText(formatSafely(...values)))) original(...values)
    }
    Object.assign(console, { [method]: capture })
  }
  return () => void Object.assign(console, originals)
}
