/** Messages between a worker and its executor processes: a line of JSON each, on a channel that both have open. */

import type { CapturedState } from '../../domain/browser-contexts/storage-state.ts'
import type { ReachedWait, WaitResults } from '../../domain/queue/run-options.ts'
import type { PageInput } from '../../domain/run-api/live-views.ts'
import {
  isLogLevel,
  jsonBytesMax,
  type LogLevel,
  messageLengthMax,
  stepsMax,
} from '../../domain/runs/reported-values.ts'
import { isName } from '../../domain/workflows/author-arguments.ts'
import type { EvidencePolicy } from '../../domain/workflows/define-workflow.ts'
import type { TotpSeed } from '../../domain/workflows/totp.ts'
import type { DeclaredValues } from '../../domain/workflows/workflow.ts'
import type { SignInKind, WaitKind } from '../../storage/tables/run-tables.ts'
import type { BrowserEndpoint } from '../browser/browser-host.ts'

/** `attempt` counts the attempts of one process, so that late messages of an earlier attempt are ignored. */
export type ToExecutor =
  /**
   * The first message. Paths of modules in the deployment's directory, by workflow. The mark is the line that the process
   * writes to both output streams before it sends `marked`.
   */
  | { type: 'load'; modules: Record<string, string>; mark: string }
  | {
      type: 'start'
      attempt: number
      workflowId: string
      runId: string
      runAttempt: number
      variables: Record<string, unknown>
      /** What the workflow declares and its account has. */
      declared: DeclaredValues
      /** Results of finished steps by name, as JSON. */
      steps: Record<string, string>
      /** The names of those results in their order, if the run has reached a wait. */
      recorded: readonly string[] | undefined
      captureState: CaptureState
      /** Whether the workflow's definition asks for a browser. */
      usesBrowser: boolean
      /** If the attempt's browser context has a sign-in. */
      session?: SessionStart | undefined
      /** When to send evidence of what the browser did. Secrets are the values to mask in it. */
      evidence: EvidencePolicy
      secrets: unknown[]
    }
  /** `timedOut`: the attempt has reached its time limit. */
  | { type: 'abort'; attempt: number; reason: string; timedOut: boolean }
  | { type: 'stepSaved'; attempt: number; name: string }
  /** Outcomes are JSON. Deadlines are those of sleeps, by name. Secrets are those of answers, to mask in evidence. */
  | ({ type: 'waitsEnded'; attempt: number; secrets: readonly unknown[] } & Omit<WaitResults, 'isSuspended'>)
  /** The attempt is to close its browser and end, since its run waits. */
  | { type: 'suspend'; attempt: number }
  /** `isNew` is false if the browser context has used a code of this time step or of a later one. */
  | { type: 'codeUsed'; attempt: number; isNew: boolean }
  /** `error` is set when the artifact was refused. */
  | { type: 'artifactSaved'; attempt: number; id: number; error?: string }
  | { type: 'browser'; attempt: number; endpoint: BrowserEndpoint; storageState: string | undefined }
  | { type: 'browserUnavailable'; attempt: number; message: string }
  /** Someone starts or stops to watch the browser, or can take another frame. */
  | { type: 'screencast'; attempt: number; action: 'start' | 'stop' | 'next' }
  /** A person takes over or returns control, or no user has taken over in time. */
  | { type: 'takeOver'; attempt: number; action: 'begin' | 'end' | 'unanswered' }
  | { type: 'input'; attempt: number; input: PageInput }

export type FromExecutor =
  /** The workflows are loaded, or have failed to load. */
  | { type: 'ready' }
  /** What the process has written before through its output streams is before a mark. */
  | { type: 'marked' }
  | ({ attempt: number } & AttemptMessage)

/** Sent by an executing attempt. Values are JSON text. */
export type AttemptMessage =
  | { type: 'log'; level: LogLevel; message: string }
  | { type: 'progress'; percent: number; message: string | null }
  | { type: 'step'; name: string; state: 'started' | 'failed' | 'reused'; wait?: WaitKind }
  | { type: 'stepFinished'; name: string; value: string }
  /** `names` are all waits that are open, `reached` those that were not sent before. */
  | {
      type: 'waits'
      reached: readonly ReachedWait[]
      names: readonly string[]
      /** Whether the run waits for nothing else. */
      canSuspend: boolean
      hasOpenBrowser: boolean
      reusable: boolean
    }
  /** The last message of an attempt that was asked to end since its run waits. */
  | { type: 'suspended'; reusable: boolean; state: CapturedState }
  /** `content` is base64; `id` counts within the attempt. */
  | { type: 'artifact'; id: number; name: string; mediaType: string; content: string }
  | { type: 'browserRequested' }
  /** Evidence follows, even after `returned` or `threw`, until `evidenceEnded`. */
  | { type: 'evidenceStarted' }
  | { type: 'evidence'; name: string; mediaType: string; content: string }
  | { type: 'evidenceEnded' }
  /** What the shown page looks like: a JPEG in base64, and the size of the page in CSS pixels. */
  | { type: 'frame'; data: string; width: number; height: number }
  | { type: 'tabs'; tabs: readonly ShownTab[] }
  /** The workflow asks for a person, and waits. */
  | { type: 'takeOverAwaited'; message: string; waitMinutes: number }
  /** The workflow waits for a person, or no longer. */
  | { type: 'paused' }
  | { type: 'resumed' }
  /** `reusable` is false when the process has grown or code of the attempt may still run in it. */
  | { type: 'returned'; output: string; reusable: boolean; state: CapturedState }
  | {
      type: 'threw'
      reason: 'workflowFailed' | 'nonRetryable' | 'outputInvalid'
      name: string
      message: string
      stack: string | null
      /** The step that threw the error. */
      step: string | null
      state: CapturedState
    }
  /** The last message of an attempt that needs a session, or checks for one, and has found none. */
  | {
      type: 'signedOut'
      message: string
      stack: string | null
      step: string | null
      reusable: boolean
    }
  /** A one-time code to mask, and its time step. The workflow gets the code after `codeUsed`. */
  | { type: 'code'; code: string; step: number }
  /** Code that the workflow left behind threw an error that nothing handles, which ends the process. */
  | { type: 'crashed'; name: string; message: string; stack: string | null }

/** Whether the output before the message belongs to the attempt, and ends with it: a line without its end is complete. */
export function endsOutput(message: FromExecutor): boolean {
  if (message.type === 'waits') return message.canSuspend
  return ['ready', 'returned', 'threw', 'suspended', 'signedOut', 'crashed'].includes(message.type)
}

/** What the attempt knows of the sign-in of its browser context. */
export interface SessionStart {
  /** If the run signs in or checks; `null` for one that needs the session. */
  kind: SignInKind | null
  totp: TotpSeed | null
}

export interface ShownTab {
  url: string
  /** Whether frames are of this page. */
  isShown: boolean
}

/** When an attempt sends its browser's storage state: when it succeeds, when it ends, or never. */
export type CaptureState = 'never' | 'onSuccess' | 'always'

/** How long a workflow waits until someone takes over, unless it says otherwise. */
export const awaitedMinutes = { default: 10, max: 30 }

/** The descriptor of the channel in the executor. It is a socket, open in both directions. */
export const channelDescriptor = 3

/** Enough for the largest message: a trace in base64. */
export const messageBytesMax = 32 * 1024 * 1024

type Check = (value: unknown) => boolean
type MembersOf<Message> = { [Member in Exclude<keyof Message, 'type'>]-?: Check }
type Shapes = { [Type in FromExecutor['type']]: MembersOf<Extract<FromExecutor, { type: Type }>> }

const isText: Check = (value) => typeof value === 'string'
const isTextOrNull: Check = (value) => value === null || isText(value)
const isNumber: Check = (value) => typeof value === 'number'
const isOneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value)
const isTab: Check = (value) => isText(Object(value).url) && typeof Object(value).isShown === 'boolean'
const isTabs: Check = (value) => Array.isArray(value) && value.length <= 100 && value.every(isTab)
const isJson: Check = (value) => typeof value === 'string' && Buffer.byteLength(value) <= jsonBytesMax
const isState: Check = (value) => {
  if (value === undefined) return true
  const { json, tooLarge, unreadable } = Object(value)
  return isText(json) || isNumber(tooLarge) || isText(unreadable)
}

const isObject: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isFlag = isOneOf(true, false)
const isNames: Check = (value) => Array.isArray(value) && value.length <= stepsMax && value.every(isName)
const isWait: Check = (value) => {
  const { name, kind, deadline, title, shown, workflowId, variables, options, isDetached } = Object(value)
  if (!isName(name)) return false
  if (kind === 'run') return isText(workflowId) && isObject(variables) && isObject(options) && isFlag(isDetached)
  if (!isNumber(deadline) || !Number.isSafeInteger(deadline)) return false
  const isTitle = title === null || (isText(title) && title.length <= messageLengthMax)
  return kind === 'sleep' || (kind === 'answer' && isTitle && (shown === null || isObject(shown)))
}
const isWaits: Check = (value) => Array.isArray(value) && value.length <= stepsMax && value.every(isWait)

const isWaitKind: Check = (value) => value === undefined || isOneOf('sleep', 'answer', 'run')(value)

const attempt = isNumber
const shapes: Shapes = {
  ready: {},
  marked: {},
  log: { attempt, level: isLogLevel, message: isText },
  progress: { attempt, percent: isNumber, message: isTextOrNull },
  step: { attempt, name: isName, state: isOneOf('started', 'failed', 'reused'), wait: isWaitKind },
  stepFinished: { attempt, name: isName, value: isJson },
  artifact: { attempt, id: isNumber, name: isText, mediaType: isText, content: isText },
  browserRequested: { attempt },
  evidenceStarted: { attempt },
  evidence: { attempt, name: isText, mediaType: isText, content: isText },
  evidenceEnded: { attempt },
  frame: { attempt, data: isText, width: isNumber, height: isNumber },
  tabs: { attempt, tabs: isTabs },
  takeOverAwaited: { attempt, message: isText, waitMinutes: isNumber },
  paused: { attempt },
  resumed: { attempt },
  crashed: { attempt, name: isText, message: isText, stack: isTextOrNull },
  waits: { attempt, reached: isWaits, names: isNames, canSuspend: isFlag, hasOpenBrowser: isFlag, reusable: isFlag },
  suspended: { attempt, reusable: isFlag, state: isState },
  signedOut: { attempt, message: isText, stack: isTextOrNull, step: isTextOrNull, reusable: isFlag },
  code: { attempt, code: isText, step: Number.isSafeInteger },
  returned: { attempt, output: isJson, reusable: isFlag, state: isState },
  threw: {
    attempt,
    reason: isOneOf('workflowFailed', 'nonRetryable', 'outputInvalid'),
    name: isText,
    message: isText,
    stack: isTextOrNull,
    step: isTextOrNull,
    state: isState,
  },
}

const checksByType = new Map<unknown, [string, Check][]>(
  Object.entries(shapes).map(([type, shape]) => [type, Object.entries(shape)]),
)

/**
 * Parses a message of an executor. A workflow can write to the channel by its descriptor, so nothing in it is trusted.
 *
 * @throws {Error} if it is no message.
 */
export function parseMessage(line: string): FromExecutor {
  const message = JSON.parse(line)
  const type: unknown = message?.type
  const checks = checksByType.get(type)
  if (!checks?.every(([member, check]) => check(message[member]))) throw new Error('It is no message.')
  return message
}
