/** Messages between a worker and its executor processes. */
import type { BrowserEndpoint } from './browser/browser-host.ts'

/** `attempt` counts the attempts of one process, so that late messages of an earlier attempt are ignored. */
export type ToExecutor =
  | {
      type: 'start'
      attempt: number
      workflowId: string
      runId: string
      runAttempt: number
      variables: Record<string, unknown>
      /** Results of finished steps by name, as JSON. */
      steps: Record<string, string>
      captureState: CaptureState
    }
  | { type: 'abort'; attempt: number; reason: string }
  | { type: 'stepSaved'; attempt: number; name: string }
  /** `error` is set when the artifact was refused. */
  | { type: 'artifactSaved'; attempt: number; id: number; error?: string }
  | { type: 'browser'; attempt: number; endpoint: BrowserEndpoint; storageState: string | undefined }
  | { type: 'browserUnavailable'; attempt: number; message: string }

export type FromExecutor =
  /** The loaded workflows as JSON. */
  | { type: 'ready'; workflows: string }
  | { type: 'loadFailed'; message: string }
  | ({ attempt: number; at: number } & AttemptMessage)

/** Sent by an executing attempt. Values are JSON text. */
export type AttemptMessage =
  | { type: 'log'; level: 'info' | 'warn' | 'error'; message: string }
  | { type: 'progress'; percent: number; message: string | null }
  | { type: 'step'; name: string; state: 'started' | 'failed' | 'reused' }
  | { type: 'stepFinished'; name: string; value: string }
  /** `content` is base64; `id` counts within the attempt. */
  | { type: 'artifact'; id: number; name: string; mediaType: string; content: string }
  | { type: 'browserRequested' }
  /** `reusable` is false when the process has grown or code of the attempt may still run in it. */
  | { type: 'returned'; output: string; reusable: boolean; state: CapturedState }
  | { type: 'threw'; reason: 'workflowFailed' | 'outputInvalid'; name: string; message: string; state: CapturedState }

/** When an attempt sends its browser's storage state: when it succeeds, when it ends, or never. */
export type CaptureState = 'never' | 'onSuccess' | 'always'

/**
 * The browser's storage state as JSON, or why it is missing. A state above the size limit is not sent to the worker.
 * `undefined` when it was not requested.
 */
export type CapturedState = { json: string } | { tooLarge: number } | { unreadable: string } | undefined
