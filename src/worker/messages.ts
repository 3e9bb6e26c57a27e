/** What a worker and the processes that execute its attempts say to each other. */

import type { BrowserEndpoint } from './browser/browser-host.ts'
import type { TellsState } from './run-browser.ts'

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
      /** When the browser's storage state is to be told at the end. */
      tellsState: TellsState
    }
  | { type: 'abort'; attempt: number; reason: string }
  | { type: 'stepKept'; attempt: number; name: string }
  /** `refused` says why, when it could not be kept. */
  | { type: 'artifactKept'; attempt: number; id: number; refused?: string }
  | { type: 'browser'; attempt: number; endpoint: BrowserEndpoint; storageState: string | undefined }
  | { type: 'browserRefused'; attempt: number; message: string }

export type FromExecutor =
  /** The loaded workflows as JSON. */
  | { type: 'ready'; workflows: string }
  | { type: 'refused'; message: string }
  | ({ attempt: number; at: number } & ChannelMessage)

/** What an executing attempt says. Values are JSON text. */
export type ChannelMessage =
  | { type: 'log'; level: 'info' | 'warn' | 'error'; message: string }
  | { type: 'progress'; percent: number; message: string | null }
  | { type: 'step'; name: string; state: 'started' | 'failed' | 'reused' }
  | { type: 'stepFinished'; name: string; value: string }
  /** `content` in base64; `id` counts within the attempt. */
  | { type: 'artifact'; id: number; name: string; mediaType: string; content: string }
  | { type: 'browserWanted' }
  /** `reusable` unless the process has grown, or something of the attempt goes on in it. */
  | { type: 'returned'; output: string; reusable: boolean; state: TakenState }
  | { type: 'threw'; name: string; message: string; state: TakenState }

/**
 * The browser's storage state as JSON, or why there is none: it could not be read, or has more bytes than are kept, and
 * is spared the worker then. `undefined` when it is not to be told.
 */
export type TakenState = { json: string } | { tooLarge: number } | { unreadable: string } | undefined
