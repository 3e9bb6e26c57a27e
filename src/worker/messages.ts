/** What a worker and the processes that execute its attempts say to each other. */

/** `attempt` numbers attempts within the process, so that words of an earlier one are not taken for this one's. */
export type ToExecutor =
  | {
      type: 'start'
      attempt: number
      workflowId: string
      runId: string
      runAttempt: number
      variables: Record<string, unknown>
      /** Values of finished steps by name, as JSON. */
      steps: Record<string, string>
    }
  | { type: 'abort'; attempt: number; reason: string }
  | { type: 'stepKept'; attempt: number; name: string }

export type FromExecutor =
  /** The loaded workflows as JSON. */
  { type: 'ready'; workflows: string } | { type: 'refused'; message: string } | ({ attempt: number; at: number } & Word)

/** What an executing attempt says. Values are JSON text. */
export type Word =
  | { type: 'log'; level: 'info' | 'warn' | 'error'; message: string }
  | { type: 'progress'; percent: number; message: string | null }
  | { type: 'step'; name: string; state: 'started' | 'failed' | 'reused' }
  | { type: 'stepFinished'; name: string; value: string }
  /** `reusable` unless the process has grown, or something of the attempt goes on in it. */
  | { type: 'returned'; output: string; reusable: boolean }
  | { type: 'threw'; name: string; message: string }
